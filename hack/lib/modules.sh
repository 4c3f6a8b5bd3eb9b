# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Lists the Go modules of this repository. There is no go.work, so `./...` never leaves a
# module. Source it from a script whose working directory is the root of the repository.

export GOWORK=off

# product_modules prints the directory of each module that is part of the
# product: the root, the staging modules and the examples in them.
product_modules() {
  find . -name go.mod -not -path './hack/*' -not -path './_output/*' -print0 |
    xargs -0 -n 1 dirname | LC_ALL=C sort
}

# tools_modules prints the directory of each module that is not part of the product: the
# benchmarks, and the modules that pin tools.
tools_modules() {
  find hack -name go.mod -print0 | xargs -0 -n 1 dirname | LC_ALL=C sort
}
