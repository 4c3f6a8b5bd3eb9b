#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the number of lines of source, without generated code, and how many of them are code
# rather than comments or blank lines. The tests in hack include the packages that only they import.
#
# Usage: hack/sizes.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

library=staging/src/samplecontroller.io/controller-manager
shared='^hack/test/(e2e|framework|integration|leaders|monitoring|cluster/clustertest)/' # imported by tests only

# files_of prints the files in folders that are not generated.
files_of() { # FOLDER...
  # The exit code of grep -L depends on its version.
  git ls-files -- "${@/%//*.go}" | { xargs grep -L '^// Code generated' || true; }
}

# source_of prints the source files in folders, except those that match a pattern.
source_of() { # PATTERN FOLDER...
  local pattern="$1"
  shift
  files_of "$@" | grep -Ev "_test\.go$|/testing/|${pattern}"
}

# print_source prints the number of lines of the given files, and how many of them are code.
print_source() { # NAME <FILES
  local files
  mapfile -t files
  printf '%-32s %6d %6d\n' "$1" "$(cat "${files[@]}" | wc -l)" "$(cat "${files[@]}" | grep -Evc '^[[:space:]]*(//.*)?$')"
}

printf '%-32s %6s %6s\n' 'Source' lines code
source_of '/(examples|managertest|internal/fakeapi)/' "${library}" | print_source library
source_of none "${library}"/{managertest,internal/fakeapi} | print_source 'its test kit'
source_of none pkg | print_source pkg
source_of none cmd | print_source cmd
source_of "${shared}" hack | print_source 'hack, without tests'
files_of hack cmd | grep -E "_test\.go$|${shared}" | print_source 'tests in hack and cmd'
files_of . | grep -E "_test\.go$|${shared}" | print_source 'all tests'

printf '%-32s %6d\n' 'largest file of these' "$(source_of /examples/ "${library}" pkg cmd | xargs wc -l | grep -v ' total$' | sort -rn | awk 'NR == 1 { print $1 }')"
