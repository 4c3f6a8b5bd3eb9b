#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs linters on the product's modules and on the tools that have code of their own, and looks
# for misspellings in all files. hack/tools/lint/config.go configures the checks, and
# imports.go beside it the allowed imports.
#
# Usage: hack/verify-lint.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh
source hack/lib/modules.sh

# Not a temporary file, so that the go command relinks it only when it changes.
lint="${PWD}/_output/lint"
go build -C hack/tools/lint -o "${lint}" .

failed=0
# The other tools are left out: they import all of Kubernetes, which the checks would read.
for module in $(product_modules) hack/tools/kstatus hack/tools/lint hack/tools/release hack/tools/bench; do
  go -C "${module}" vet -vettool="${lint}" ./... || failed=1
done

# The linters see only direct imports.
if go list -deps ./cmd/... | grep -E '^(k8s\.io/kubernetes|sigs\.k8s\.io/controller-runtime)/'; then
  echo "The daemon must not link these packages. 'go mod why -vendor PACKAGE' shows what imports them." >&2
  failed=1
fi

working_tree . | xargs -0 go tool -modfile=hack/tools/lint/go.mod misspell -error || failed=1

exit "${failed}"
