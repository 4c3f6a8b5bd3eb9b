#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates from the rules in the controllers' descriptors the ClusterRole in
# manifests/rbac, the Role in manifests/components/single-namespace, the admission policy
# in manifests/fence and the audit policy of the tests.
#
# Usage: hack/update-rbac.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off

# Not straight into the files: a program that fails would leave them empty.
clusterrole="$(go run ./hack/rbac)"
role="$(go run ./hack/rbac -namespace=default)"
fence="$(go run ./hack/rbac -policy=fence)"
audit="$(go run ./hack/rbac -policy=audit-policy)"
cat >manifests/rbac/clusterrole.yaml <<<"${clusterrole}"
cat >manifests/components/single-namespace/role.yaml <<<"${role}"
cat >manifests/fence/policy.yaml <<<"${fence}"
cat >hack/cluster/audit-policy.yaml <<<"${audit}"
