#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that shell scripts are formatted as shfmt does, and runs shellcheck if it is on the
# PATH. This repository cannot pin shellcheck, because it is not a Go program.
#
# Usage: hack/verify-shell.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

failed=0
shfmt=(go tool -modfile=hack/tools/lint/go.mod shfmt -i 2 -ci)
if ! working_tree '*.sh' .ci/run | xargs -0 "${shfmt[@]}" -d >&2; then
  echo "These scripts are not formatted. Run '${shfmt[*]} -w FILE...'." >&2
  failed=1
fi

if command -v shellcheck >/dev/null; then
  working_tree '*.sh' .ci/run | xargs -0 shellcheck --external-sources >&2 || failed=1
else
  echo "shellcheck is not installed: skipped." >&2
fi

exit "${failed}"
