#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Tidies go.mod and go.sum of all modules.
#
# Usage: hack/update-modules.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

for module in $(product_modules) $(tools_modules); do
  go -C "${module}" mod tidy
done
