#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the daemon, or another command, stamped with the version of the commit.
#
# Usage: hack/build.sh [COMMAND]
#
# COMMAND is a directory in cmd or hack/tools: sample-controller-manager (the default), kubectl-scm or
# run.
#
# Environment:
#   OUTPUT         the file to write (default bin/COMMAND)
#   RELEASE        if 1, builds a static and reproducible binary, with the Go release in go.mod
#   FIPS           if 1, builds with the validated Go Cryptographic Module, in FIPS 140-3 mode
#   RACE           if 1, with the race detector; needs a C compiler
#   LDFLAGS        additional linker flags
#   BUILD_VERSION  the version to stamp (default: the commit's)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/flags.sh
source hack/lib/version.sh

command="${1:-sample-controller-manager}"
output="${OUTPUT:-bin/${command}}"
package="cmd/${command}"
if [[ ! -d "${package}" ]]; then
  package="hack/tools/${command}"
fi
flags=(-buildvcs=false)
if [[ "${RELEASE:-}" == 1 ]]; then
  # Overrides the environment and `go env -w`.
  export GOFLAGS="-trimpath ${no_method_lookup}" GOEXPERIMENT='' GOFIPS140=off GOAMD64=v1 GOARM64=v8.0
  pin_toolchain
elif [[ "${RACE:-}" == 1 ]]; then
  export CGO_ENABLED=1
  flags+=(-race)
fi
if fips; then
  export GOFIPS140="${fips_module}"
fi

# Garbage collections take a fifth of a compiler's time.
export GOGC=off GOMEMLIMIT=2GiB
GOWORK=off go build "${flags[@]}" \
  -ldflags "-s -w $(version_ldflags) ${LDFLAGS:-}" -o "${output}" "./${package}"
echo "${output}"
