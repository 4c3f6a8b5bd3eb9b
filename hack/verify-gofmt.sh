#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that Go files are formatted as gofmt -s does.
#
# Usage: hack/verify-gofmt.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

if ! working_tree '*.go' | xargs -0 --no-run-if-empty gofmt -s -d >&2; then
  echo "These Go files are not formatted. Run 'make update' (or only hack/update-gofmt.sh)." >&2
  exit 1
fi
