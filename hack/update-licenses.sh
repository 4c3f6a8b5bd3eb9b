#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates hack/tools/release/licenses.md: the modules that are linked into the daemon, and their
# licenses in the module cache. Fails if a license is not allowed.
#
# Usage: hack/update-licenses.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool="$(mktemp -d)"
trap 'rm -rf "${tool}"' EXIT
GOWORK=off go build -C hack/tools/release -o "${tool}/release" .
# Via a variable, so that a failing program does not empty the file.
table="$("${tool}/release" licenses)"
cat >hack/tools/release/licenses.md <<<"${table}"
