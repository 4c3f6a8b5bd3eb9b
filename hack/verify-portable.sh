#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the library and its tests compile for Windows and macOS, where users of the library
# develop.
#
# Usage: hack/verify-portable.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../staging/src/samplecontroller.io/controller-manager"
source ../../../../hack/lib/flags.sh
for os in windows darwin; do
  GOWORK=off GOOS="${os}" go vet ./...
done
