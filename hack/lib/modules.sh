# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The Go modules of this repository. To be sourced by scripts that stand in the
# root of the repository: without a go.work, `./...` never leaves a module.

export GOWORK=off

# product_modules prints the directory of each module that is part of the
# product: the root, the staging modules and the examples in them.
product_modules() {
  find . -name go.mod -not -path './hack/*' -not -path './_output/*' -print0 |
    xargs -0 -n 1 dirname | LC_ALL=C sort
}

# tools_modules prints the directory of each module that is no part of the product:
# those that pin tools, and the benchmarks.
tools_modules() {
  find hack -name go.mod -print0 | xargs -0 -n 1 dirname | LC_ALL=C sort
}
