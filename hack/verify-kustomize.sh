#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every kustomization of the manifests, with each selection of components, can
# be built, that its objects are valid and grant no more than they may, and that they keep
# the promises which no end-to-end test can show.
#
# Usage: hack/verify-kustomize.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
go run ./hack/kustomize
