#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every kustomization of the manifests, and each choice of the components, can
# be built, that what comes of them is valid and grants no more than it may, and that it
# is what the components promise.
#
# Usage: hack/verify-kustomize.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
go run ./hack/kustomize
