#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates Go code from the API types: deep copies in the module api; the
# clientset, informers, listers and apply configurations in the module client-go.
# The fake clientset gets its schemas from manifests/crds: run hack/update-crds.sh first.
#
# Usage: hack/update-codegen.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="$(pwd -P)"
api=samplecontroller.io/api
clients=samplecontroller.io/client-go

export GOWORK=off
tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT

# Lists the API packages, and maps each to the CRD of the group that the package names.
packages=()
schemas=()
for doc in staging/src/"${api}"/*/*/doc.go; do
  package="$(dirname "${doc#staging/src/}")"
  packages+=("${package}")
  group="$(sed -n 's/^\/\/ +groupName=//p' "${doc}")"
  for crd in "${root}/manifests/crds/${group:-none}"_*.yaml; do
    if [[ -e "${crd}" ]]; then
      schemas+=("${package}=${crd}")
    fi
  done
done
go -C hack/tools/codegen run ./openapi-schema "${schemas[@]}" >"${tmp}/schema.json"

# kube_codegen.sh builds the generators of its own module, at the version pinned here,
# and installs them into GOBIN.
export GOBIN="${tmp}/bin"
go -C hack/tools/codegen mod download k8s.io/code-generator
# shellcheck source=/dev/null
source "$(go -C hack/tools/codegen list -m -f '{{.Dir}}' k8s.io/code-generator)/kube_codegen.sh"

# Each generator must run inside the module that it writes to. Elsewhere it does not find
# the packages, and client-gen notices that only after it has deleted the old ones.
cd "${root}/staging/src/${api}"
kube::codegen::gen_helpers \
  --boilerplate "${root}/hack/boilerplate.go.txt" \
  .

cd "${root}/staging/src/${clients}"
kube::codegen::gen_client \
  --with-watch \
  --with-applyconfig \
  --applyconfig-openapi-schema "${tmp}/schema.json" \
  --output-dir . \
  --output-pkg "${clients}" \
  --boilerplate "${root}/hack/boilerplate.go.txt" \
  ../api

# gen_client reads only packages that have clients. Run again with the package whose Status the
# statuses embed, so that their apply configurations embed one, too.
"${GOBIN}/applyconfiguration-gen" \
  --go-header-file "${root}/hack/boilerplate.go.txt" \
  --output-dir applyconfiguration \
  --output-pkg "${clients}/applyconfiguration" \
  --openapi-schema "${tmp}/schema.json" \
  "${packages[@]}"
