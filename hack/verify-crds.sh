#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that manifests/crds matches what hack/update-crds.sh generates.
#
# Usage: hack/verify-crds.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/verify-generated.sh

verify_generated hack/update-crds.sh
