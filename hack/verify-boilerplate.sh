#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that source files begin with the license header in
# hack/boilerplate.go.txt, in the comment syntax of their language.
#
# Usage: hack/verify-boilerplate.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

slashes="$(sed -n '1,2p' hack/boilerplate.go.txt)"
hashes="${slashes//\/\//#}"

# header prints the first two lines of a file, skipping what must come before a header:
# an interpreter, a Dockerfile's syntax, build constraints, blank lines.
header() { # FILE
  sed -E -e '/^(#!|# syntax=|\/\/go:build |\/\/ \+build |$)/d' "$1" | sed -n '1,2p'
}

failed=0
check() { # HEADER PATHSPEC...
  local expected="$1" file
  shift
  while IFS= read -r -d '' file; do
    if [[ "$(header "${file}")" != "${expected}" ]]; then
      printf '%s\n' "${file} does not begin with:" "${expected}" '' >&2
      failed=1
    fi
  done < <(working_tree "$@")
}

check "${slashes}" '*.go'
check "${hashes}" '*.sh' .ci/run Makefile '*Dockerfile'

exit "${failed}"
