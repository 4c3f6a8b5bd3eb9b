#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates manifests/crds/<group>_<plural>.yaml from the API types.
#
# Usage: hack/update-crds.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
crds="$(pwd -P)/manifests/crds"
mkdir -p "${crds}"

export GOWORK=off
bin="$(mktemp -d)"
trap 'rm -rf "${bin}"' EXIT
go -C hack/tools/codegen build -o "${bin}" sigs.k8s.io/controller-tools/cmd/controller-gen

# controller-gen joins group and plural by an underscore. No hand-written file name has one.
rm -f "${crds}"/*_*.yaml
cd staging/src/samplecontroller.io/api
"${bin}/controller-gen" crd paths=./... output:crd:dir="${crds}"
