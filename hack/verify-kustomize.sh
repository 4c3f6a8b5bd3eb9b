#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds every kustomization of the manifests, with each combination of components. Checks that
# the objects are valid, that they grant no more than allowed, and that they keep the promises
# that no end-to-end test can show.
#
# Usage: hack/verify-kustomize.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
go run ./hack/tools/kustomize
