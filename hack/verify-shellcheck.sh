#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs shellcheck over the shell scripts. Where it is missing, root on Debian
# and its kin gets it installed.
#
# Usage: hack/verify-shellcheck.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

if ! command -v shellcheck >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  log="$({ apt-get update && apt-get install --yes --no-install-recommends shellcheck; } 2>&1 </dev/null)" ||
    echo "${log}" >&2
fi
if ! command -v shellcheck >/dev/null; then
  echo "shellcheck is missing. Install your distribution's package of that name, for example with" >&2
  echo "'apt-get install shellcheck' as root." >&2
  exit 1
fi

if ! working_tree '*.sh' .ci/run | xargs -0 shellcheck --external-sources >&2; then
  echo "shellcheck complains: see above and mend the scripts." >&2
  exit 1
fi
