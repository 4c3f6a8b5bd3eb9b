#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of all modules, or only those that start a cluster. Says at the end
# what failed and why.
#
# Usage: hack/test.sh [integration]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

if (($# > 1)) || [[ "${1:-integration}" != integration ]]; then
  grep '^# Usage' "${BASH_SOURCE[0]}" >&2
  exit 2
fi

mkdir -p _output
report=_output/testreport failures=_output/failures.txt
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

if (($# == 0)); then
  for module in $(product_modules); do
    if [[ "${module}" != . ]]; then
      run go -C "${module}" test -json -race -timeout 10m ./...
    fi
  done
  run go test -json -race -timeout 10m ./pkg/...
fi
run go test -json -race -timeout 15m ./cmd/...

# The race detector would find nothing in a harness, but slow the cluster down.
# One package at a time, because each may start a cluster; -v shows its progress.
run go test -json -v -p 1 -timeout 30m ./hack/...

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
