#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that Go files are formatted as gofmt -s does, and that their lines are at most 120 columns wide. A tab counts
# as one column. String literals do not count, because a message that is in one piece can be searched for, and neither
# does preformatted text in comments, such as the output of an example.
#
# Usage: hack/verify-gofmt.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

if ! working_tree '*.go' | xargs -0 --no-run-if-empty gofmt -s -d >&2; then
  echo "These Go files are not formatted. Run 'make update' (or only hack/update-gofmt.sh)." >&2
  exit 1
fi

wide="$(working_tree '*.go' ':!**/zz_generated*' ':!staging/src/*/client-go/**' ':!**/testdata/**' | xargs -0 awk '
  FNR == 1 { raw = 0 }
  {
    line = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    gsub(/`[^`]*`/, "", line)
    quotes = gsub(/`/, "", line)
    if (length(line) > 120 && !raw && !quotes && line !~ /^\t*\/\/(\t|  )/) print FILENAME ":" FNR ": is wider than 120 columns"
    raw = quotes % 2 ? !raw : raw
  }')"
if [[ -n "${wide}" ]]; then
  printf '%s\n' "${wide}" "Break these lines." >&2
  exit 1
fi
