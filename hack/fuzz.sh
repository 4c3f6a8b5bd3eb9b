#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the fuzz targets of all modules, or those whose name matches a pattern, one after
# another. A failing input is written to testdata/fuzz of its package. Fix the code and commit
# the file: `go test` then repeats the input each time.
#
# Usage: hack/fuzz.sh [PATTERN]
#
# Environment:
#   FUZZTIME  how long each target runs (default 1m)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

failed=()
while IFS=: read -r file target; do
  package="$(dirname "${file}")"
  echo "+ ${target} in ${package}"
  # -C, because go finds the package only from inside its module. -fuzzminimizetime, because
  # minimizing each interesting input would take most of the time.
  go -C "${package}" test -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-1m}" -fuzzminimizetime 100x . || failed+=("${target} in ${package}")
done < <(
  git grep --untracked --extended-regexp --only-matching '^func Fuzz\w+' -- '*_test.go' |
    sed 's/func //' | grep -E "${1:-.}" | LC_ALL=C sort
)

if ((${#failed[@]})); then
  printf 'Failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
