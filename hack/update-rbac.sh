#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates, from what the controllers declare and the rules in their descriptors: the ClusterRole in manifests/rbac,
# the ServiceAccounts in manifests/components/service-account-credentials, the bindings that
# manifests/components/single-namespace moves, the rules in manifests/components/foos-only, the admission policy in manifests/fence and the
# tests' audit policy.
#
# Usage: hack/update-rbac.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off

# generate writes FILE from a template in hack/rbac. Via a variable, so that a failing program
# does not empty the file.
generate() { # TEMPLATE FILE [CONTROLLERS]
  local content
  content="$(go run ./hack/tools/rbac -template="$1" -controllers="${3:-*}")"
  echo "${content}" >"$2"
}
generate clusterrole manifests/rbac/clusterrole.yaml
generate clusterrole manifests/components/foos-only/clusterrole.yaml foo-controller,status-aggregator-controller
generate accounts manifests/components/service-account-credentials/accounts.yaml
generate reads manifests/components/service-account-credentials/reads.yaml
generate flowschema manifests/components/service-account-credentials/flowschema.yaml
generate subjects manifests/components/service-account-credentials/transformers/subjects.yaml
generate served manifests/components/single-namespace/transformers/served.yaml
generate fence manifests/fence/policy.yaml
generate audit-policy hack/test/cluster/audit-policy.yaml
