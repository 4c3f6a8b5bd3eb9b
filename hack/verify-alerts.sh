#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the alerts in manifests/monitoring by promtool: that they are well-formed, and
# that each fires when it should and only then, as hack/monitoring/alerts says.
#
# Usage: hack/verify-alerts.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

promtool="$(hack/prometheus.sh)/promtool"
tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT

# promtool takes the rules without what makes an object of Kubernetes of them.
sed -e '1,/^spec:$/d' -e 's/^  //' manifests/monitoring/prometheusrule.yaml >"${tmp}/rules.yaml"
mkdir "${tmp}/tests"
cp hack/monitoring/alerts/*.yaml "${tmp}/tests"
"${promtool}" check rules "${tmp}/rules.yaml"
"${promtool}" test rules "${tmp}"/tests/*.yaml
