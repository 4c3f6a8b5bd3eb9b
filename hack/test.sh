#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of all modules, or only those that start a cluster.
#
# Usage: hack/test.sh [integration]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

if (($# > 1)) || [[ "${1:-integration}" != integration ]]; then
  grep '^# Usage' "${BASH_SOURCE[0]}" >&2
  exit 2
fi

failed=0
run() {
  echo "+ $*"
  # Unbuffered: a package's result shows as soon as it is there.
  "$@" | sed --unbuffered '/\[no test files\]$/d' || failed=1
}

# What the cluster of the tests runs takes minutes to build the first time.
go run ./hack/binaries

if (($# == 0)); then
  for module in $(product_modules); do
    if [[ "${module}" != . ]]; then
      run go -C "${module}" test -race -timeout 10m ./...
    fi
  done
  run go test -race -timeout 10m ./pkg/...
fi
run go test -race -timeout 15m ./cmd/...

# The race detector would find nothing in a harness, but slow the cluster down.
# One package at a time, because each may start a cluster; -v shows its progress.
run go test -v -p 1 -timeout 20m ./hack/...

if ((failed)); then
  echo "Some tests failed: see above." >&2
  exit 1
fi
