#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that manifests/flags.md matches what hack/update-flags.sh generates.
#
# Usage: hack/verify-flags.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/verify-generated.sh

verify_generated hack/update-flags.sh
