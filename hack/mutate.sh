#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Changes one critical line of the product at a time and lists the changes that the tests of
# its package do not notice, but for those that hack/mutate/accepted.txt accepts.
#
# Usage: hack/mutate.sh [flags of hack/mutate] [PACKAGE...]
#
# PACKAGE is a directory, or DIRECTORY/... with all below it, in whatever module; by default
# all of the controllers and of the library.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off

flags=() packages=()
for argument in "$@"; do
  if [[ "${argument}" == -* ]]; then
    flags+=("${argument}")
  else
    packages+=("${argument}")
  fi
done
if ((${#packages[@]} == 0)); then
  packages=(./pkg/... ./staging/src/samplecontroller.io/controller-manager/...)
fi
mkdir -p _output
go build -o _output/mutate ./hack/mutate
exec nice -n 15 _output/mutate "${flags[@]}" "${packages[@]}"
