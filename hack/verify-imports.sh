#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks who imports whom: the rules are in hack/imports/rules.go.
#
# Usage: hack/verify-imports.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

# shellcheck disable=SC2046 # one argument for each module
go run ./hack/imports $(product_modules)
