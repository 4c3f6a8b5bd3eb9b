#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the top level of the repository holds exactly the expected entries, besides
# dotfiles.
#
# Usage: hack/verify-toplevel.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

expected="LICENSE Makefile OWNERS README.md cmd go.mod go.sum hack manifests pkg staging"
found="$(working_tree . | tr '\0' '\n' | cut -d / -f 1 | grep -v '^\.' | LC_ALL=C sort -u | paste -s -d ' ')"

if ! diff --unified=20 --label expected --label found <(tr ' ' '\n' <<<"${expected}") <(tr ' ' '\n' <<<"${found}") >&2; then
  echo "The top level has unexpected or missing entries. Libraries belong in staging, tools and end-to-end tests in hack," >&2
  echo "installable objects in manifests, all other code in cmd and pkg." >&2
  exit 1
fi
if [[ ! -x .ci/run ]]; then
  echo "The script .ci/run, which CI runs, is missing or not executable." >&2
  exit 1
fi
