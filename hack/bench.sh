#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Measures the daemon beside others; hack/bench/README.md says what, and how to read it.
#
# Usage: hack/bench.sh [NAME [FLAG...]]
#
# NAME is one of the Go benchmarks in lower case (churn, hammer, handover, isolation,
# memory, takeover), or loads of Foos, separated by commas (create,scale); all loads
# without. Flags are -rounds=<times>, and others of go test or of hack/bench/peers.
#
# For example: hack/bench.sh create -n=1000 -rounds=1
#              hack/bench.sh churn -rounds=3

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
name="${1:-all}"
shift || true
if grep -q -x -i "func Benchmark${name}(b \*testing.B) {" hack/bench/*_test.go; then
  flags=()
  for flag in "$@"; do
    if [[ "${flag}" == -rounds=* ]]; then
      flag="-benchtime=${flag#-rounds=}x"
    fi
    flags+=("${flag}")
  done
  exec go -C hack/bench test -run '^$' -bench "(?i)^Benchmark${name}\$" -benchtime 5x -timeout 0 . "${flags[@]}"
fi
go -C hack/bench build -o ../../bin/bench ./peers
exec bin/bench -load "${name}" "$@"
