#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs go vet over all modules that have code.
#
# Usage: hack/verify-vet.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

failed=()
for module in $(product_modules) hack/tools/codegen hack/tools/image hack/bench; do
  go -C "${module}" vet ./... || failed+=("${module}")
done
if ((${#failed[@]})); then
  echo "go vet complains in: ${failed[*]}. See above and mend the code." >&2
  exit 1
fi
