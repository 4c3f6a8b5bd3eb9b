#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the daemon, or another command, stamped with the version of the commit.
#
# Usage: hack/build.sh [COMMAND]
#
# COMMAND is a directory in cmd: sample-controller-manager (the default) or kubectl-scm.
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
source hack/lib/version.sh

command="${1:-sample-controller-manager}"
output="${OUTPUT:-bin/${command}}"
# hack/cluster builds the control plane of a local cluster with the same flags, so that
# shared packages are compiled once.
flags=(-trimpath -gcflags=all=-dwarf=false)
if [[ "${RELEASE:-}" == 1 ]]; then
  # Overrides the environment and `go env -w`.
  export CGO_ENABLED=0 GOFLAGS='' GOEXPERIMENT='' GOFIPS140=off GOAMD64=v1 GOARM64=v8.0
  pin_toolchain
  flags=(-trimpath)
elif [[ "${RACE:-}" == 1 ]]; then
  export CGO_ENABLED=1
  flags=(-race "${flags[@]}") # shares what the tests have compiled
fi
if fips; then
  export GOFIPS140="${fips_module}"
fi

# Without grpcnotrace, gRPC links html/template, which looks up methods by name at run time.
# The linker then keeps every exported method of every type, which makes the binary and its
# resident memory half as large again.
GOWORK=off go build "${flags[@]}" -buildvcs=false -tags grpcnotrace \
  -ldflags "-s -w $(version_ldflags) ${LDFLAGS:-}" -o "${output}" "./cmd/${command}"
echo "${output}"
