#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates manifests/rbac/clusterrole.yaml from the rules in the controllers'
# descriptors.
#
# Usage: hack/update-rbac.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Not straight into the file: a program that fails would leave it empty.
clusterrole="$(GOWORK=off go run ./hack/rbac)"
cat >manifests/rbac/clusterrole.yaml <<<"${clusterrole}"
