#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the binary, static and with the version of the commit stamped into it.
#
# Usage: hack/build.sh
#
# Environment:
#   OUTPUT         the file to write (default bin/sample-controller-manager)
#   RACE           if 1, with the race detector; needs a C compiler and is not static
#   BUILD_VERSION  the version to stamp (default that of the commit)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/version.sh

output="${OUTPUT:-bin/sample-controller-manager}"
if [[ "${RACE:-}" == 1 ]]; then
  # Without -trimpath, to share what `go test -race` has compiled.
  export CGO_ENABLED=1
  flags=(-race)
else
  export CGO_ENABLED=0
  flags=(-trimpath)
fi

GOWORK=off go build "${flags[@]}" -buildvcs=false \
  -ldflags "-s -w $(version_ldflags)" -o "${output}" ./cmd/sample-controller-manager
echo "${output}"
