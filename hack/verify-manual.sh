#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the pages: links, names of flags, metrics, alerts and tests, and that each fact has one
# page. Then runs the commands that the pages show, on a cluster of its own.
#
# Usage: hack/verify-manual.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
go test -vet=off -short -count 1 ./hack/test/manual ./hack/test/e2e/manual
