#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the roles and policies match what hack/update-rbac.sh generates.
#
# Usage: hack/verify-rbac.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/verify-generated.sh

verify_generated hack/update-rbac.sh
