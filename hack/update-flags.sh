#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates manifests/flags.md from the code that defines flags.
#
# Usage: hack/update-flags.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Via a variable, so that a failing program does not empty the file.
table="$(GOWORK=off go run ./hack/tools/flags)"
cat >manifests/flags.md <<<"${table}"
