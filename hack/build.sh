#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the daemon, or another command, with the version of the commit stamped into it.
#
# Usage: hack/build.sh [COMMAND]
#
# COMMAND is a directory in cmd: sample-controller-manager (the default) or kubectl-scm.
#
# Environment:
#   OUTPUT         the file to write (default bin/COMMAND)
#   RELEASE        if 1, static and the same wherever it is built
#   RACE           if 1, with the race detector; needs a C compiler
#   LDFLAGS        more flags of the linker
#   BUILD_VERSION  the version to stamp (default that of the commit)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/version.sh

command="${1:-sample-controller-manager}"
output="${OUTPUT:-bin/${command}}"
# By default with the flags of hack/cluster, which builds the control plane of a local
# cluster: what both consist of is then compiled once.
flags=(-trimpath -gcflags=all=-dwarf=false)
if [[ "${RELEASE:-}" == 1 ]]; then
  # Whatever the environment or `go env -w` says otherwise.
  export CGO_ENABLED=0 GOFLAGS='' GOEXPERIMENT='' GOFIPS140=off GOAMD64=v1 GOARM64=v8.0
  flags=(-trimpath)
elif [[ "${RACE:-}" == 1 ]]; then
  export CGO_ENABLED=1
  flags=(-race "${flags[@]}") # shares what the tests have compiled
fi

# Without grpcnotrace, gRPC links html/template, which calls methods by names that only a
# running process knows. The linker then keeps every exported method of every type, and
# the binary, and what of it is resident, is half as large again.
GOWORK=off go build "${flags[@]}" -buildvcs=false -tags grpcnotrace \
  -ldflags "-s -w $(version_ldflags) ${LDFLAGS:-}" -o "${output}" "./cmd/${command}"
echo "${output}"
