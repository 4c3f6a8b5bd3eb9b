#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the licenses of all modules linked into the daemon are allowed, and that
# hack/tools/release/licenses.md matches what hack/update-licenses.sh generates.
#
# Usage: hack/verify-licenses.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/verify-generated.sh

verify_generated hack/update-licenses.sh
