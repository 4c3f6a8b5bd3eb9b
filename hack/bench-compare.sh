#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the Go benchmarks of the hot paths at another commit and in the working tree, in
# alternating rounds, and prints the changes in time and allocations. Only benchmarks that
# exist in both are compared.
#
# Usage: hack/bench-compare.sh COMMIT
#
# Environment:
#   BENCH  pattern of the benchmarks, as for go test -bench (default all but BenchmarkMemory*)
#   COUNT  number of rounds (default 6; fewer are mostly noise)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

if (($# != 1)) || ! base="$(git rev-parse --verify --quiet "$1^{commit}")"; then
  echo "Usage: hack/bench-compare.sh COMMIT, or make bench-compare BASE=<commit>" >&2
  exit 2
fi
bench="${BENCH:-.}"
count="${COUNT:-6}"

dir="$(mktemp -d)"
trap 'git worktree remove --force "${dir}/base" || true; rm -rf "${dir}"' EXIT
git worktree add --quiet --detach "${dir}/base" "${base}"
ln -s "${PWD}" "${dir}/here"

# build compiles the benchmarks of a tree.
build() { # TREE
  local package
  cd "${dir}/$1"
  for package in $(grep -r -l --include='*_test.go' '^func Benchmark' cmd pkg staging | xargs -n 1 dirname | LC_ALL=C sort -u); do
    go -C "${package}" test -c -o "${dir}/$1.bin/${package}/benchmarks" .
  done
}

# run runs the benchmarks of a tree once.
run() { # TREE
  local binary
  for binary in $(cd "${dir}/$1.bin" && find . -name benchmarks -type f | LC_ALL=C sort); do
    cd "${dir}/$1/$(dirname "${binary}")"
    "${dir}/$1.bin/${binary}" -test.run '^$' -test.bench "${bench}" -test.skip '^BenchmarkMemory' -test.benchmem >>"${dir}/$1.txt"
  done
}

for tree in base here; do
  (build "${tree}")
done
for round in $(seq "${count}"); do
  echo "round ${round} of ${count}" >&2
  for tree in base here; do
    (run "${tree}")
  done
done
mkdir -p _output
go run "${benchstat}" "${1}=${dir}/base.txt" "here=${dir}/here.txt" | tee _output/bench-compare.txt
