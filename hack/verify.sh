#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs all checks, or the named ones, and lists at the end those that failed.
#
# Usage: hack/verify.sh [NAME...]
#
# For example: hack/verify.sh gofmt lint

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/flags.sh
names=("$@")
if ((${#names[@]} == 0)); then
  for script in hack/verify-*.sh; do
    name="${script#hack/verify-}"
    names+=("${name%.sh}")
  done
fi

log="$(mktemp)"
trap 'rm -f "${log}"' EXIT

failed=()
for name in "${names[@]}"; do
  start="${SECONDS}"
  printf '%-16s ' "${name}"
  if "hack/verify-${name}.sh" >"${log}" 2>&1 </dev/null; then
    result=PASS
  else
    result=FAIL
    failed+=("hack/verify-${name}.sh")
  fi
  printf '%4d s  %s\n' "$((SECONDS - start))" "${result}"
  if [[ "${result}" == FAIL ]]; then
    sed 's/^/    /' "${log}"
  fi
done

if ((${#failed[@]})); then
  printf '\n%d of %d checks failed:\n' "${#failed[@]}" "${#names[@]}"
  printf '    %s\n' "${failed[@]}"
  exit 1
fi
