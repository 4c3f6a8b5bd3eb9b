#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of all modules, or only those that start a cluster, or of these only those
# that do something bad to processes. Says at the end what faults did, and what failed and
# why.
#
# Usage: hack/test.sh [integration|faults]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

what="${1:-all}"
if (($# > 1)) || [[ "${what}" != @(all|integration|faults) ]]; then
  grep '^# Usage' "${BASH_SOURCE[0]}" >&2
  exit 2
fi

mkdir -p _output
report=_output/testreport failures=_output/failures.txt
FAULTS_TABLE="${PWD}/_output/faults.txt"
export FAULTS_TABLE
rm -f "${FAULTS_TABLE}"
go build -o "${report}" ./hack/testreport
: >"${failures}"

# run runs `go test -json`, which may have a -v.
run() {
  echo "+ $*"
  local flags=() before
  if [[ " $* " == *" -v "* ]]; then
    flags=(-v)
  fi
  before="$(wc -l <"${failures}")"
  if ! "$@" | "${report}" "${flags[@]}" "${failures}" && (("$(wc -l <"${failures}")" == before)); then
    echo "Failed: $*" >>"${failures}" # above is why
  fi
}

# What the cluster of the tests runs takes minutes to build the first time.
go run ./hack/binaries

if [[ "${what}" == all ]]; then
  for module in $(product_modules); do
    if [[ "${module}" != . ]]; then
      run go -C "${module}" test -json -race -timeout 10m ./...
    fi
  done
  run go test -json -race -timeout 10m ./pkg/...
fi
# The race detector would find nothing in a harness, but slow the cluster down.
# One package at a time, because each may start a cluster; -v shows its progress.
if [[ "${what}" == faults ]]; then
  FAULTS_PEERS=1 run go test -json -v -timeout 30m -run '^TestFault' ./hack/e2e
else
  run go test -json -race -timeout 15m ./cmd/...
  run go test -json -v -p 1 -timeout 30m ./hack/...
  run go -C hack/bench test -json -v -p 1 -timeout 10m ./... # of the benchmarks, which it does not run
fi

if [[ -s "${FAULTS_TABLE}" ]]; then
  cat "${FAULTS_TABLE}"
fi

if [[ -s "${failures}" ]]; then
  {
    echo
    cat "${failures}"
    # Once more in short: the reasons may be long.
    echo
    grep '^Failed: ' "${failures}"
  } >&2
  exit 1
fi
