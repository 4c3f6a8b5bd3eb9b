#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints how many lines the source has, without tests and generated code, and how many the
# library's example has after its imports, beside the same program on controller-runtime.
#
# Usage: hack/sizes.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

library=staging/src/samplecontroller.io/controller-manager

# source_of prints the files of folders, but for those that a pattern excludes.
source_of() { # PATTERN FOLDER...
  local pattern="$1"
  shift
  git ls-files -- "${@/%//*.go}" | grep -Ev "_test\.go$|/testing/|${pattern}" | xargs grep -L '^// Code generated'
}

print() { printf '%-32s %6d\n' "$@"; }

echo 'Lines of source'
print library "$(source_of '/(examples|managertest|internal/fakeapi)/' "${library}" | xargs cat | wc -l)"
print 'its test kit' "$(source_of none "${library}"/{managertest,internal/fakeapi} | xargs cat | wc -l)"
print pkg "$(source_of none pkg | xargs cat | wc -l)"
print cmd "$(source_of none cmd | xargs cat | wc -l)"
print 'largest file of these' "$(source_of /examples/ "${library}" pkg cmd | xargs wc -l | grep -v ' total$' | sort -rn | awk 'NR == 1 { print $1 }')"
echo
echo 'The example after its imports'
for program in "the library:${library}/examples/quota" controller-runtime:hack/bench/controllerruntime/quota; do
  print "on ${program%%:*}" "$(sed '1,/^)$/d' "${program#*:}/main.go" | wc -l)"
done
