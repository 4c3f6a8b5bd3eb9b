#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that shell scripts are formatted as shfmt does. Where shellcheck is on the PATH,
# it has to find nothing; elsewhere the scripts are only parsed, because shellcheck is
# not a Go program that this repository could pin.
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
