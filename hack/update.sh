#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates all generated files, tidies the modules and formats the code.
#
# Usage: hack/update.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# In this order: the code generators read the CRDs, and the other scripts compile their output.
scripts=(hack/update-crds.sh hack/update-codegen.sh)
for script in hack/update-*.sh; do
  [[ " ${scripts[*]} " == *" ${script} "* ]] || scripts+=("${script}")
done

for script in "${scripts[@]}"; do
  echo "${script}"
  "${script}"
done
