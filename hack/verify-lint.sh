#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs linters over the modules of the product and over the tools that are more than a
# pinned version, and looks for misspelt words in all files. hack/tools/lint/config.go
# says which checks are on, imports.go beside it which package may import which.
#
# Usage: hack/verify-lint.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh
source hack/lib/modules.sh

# Not a temporary file: the go command links it only when it changes.
lint="${PWD}/_output/lint"
go build -C hack/tools/lint -o "${lint}" .

failed=0
# Not over the other tools: the checks would read all of Kubernetes, which those import.
for module in $(product_modules) hack/tools/image hack/tools/kstatus hack/tools/lint hack/bench; do
  go -C "${module}" vet -vettool="${lint}" ./... || failed=1
done

# depguard sees what our packages import, but not what that imports.
if go list -deps ./cmd/... | grep -E '^(k8s\.io/kubernetes|sigs\.k8s\.io/controller-runtime)/'; then
  echo "The daemon must not link these packages. 'go mod why -vendor PACKAGE' says what imports them." >&2
  failed=1
fi

working_tree . | xargs -0 go tool -modfile=hack/tools/lint/go.mod misspell -error || failed=1

exit "${failed}"
