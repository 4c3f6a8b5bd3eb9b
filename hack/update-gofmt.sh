#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Formats Go files as gofmt -s does.
#
# Usage: hack/update-gofmt.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

working_tree '*.go' | xargs -0 --no-run-if-empty gofmt -s -w
