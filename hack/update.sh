#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates anew all that is generated, tidies the modules and formats the code.
#
# Usage: hack/update.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# The CRDs go into the generated code, which the others compile.
scripts=(hack/update-crds.sh hack/update-codegen.sh)
for script in hack/update-*.sh; do
  [[ " ${scripts[*]} " == *" ${script} "* ]] || scripts+=("${script}")
done

for script in "${scripts[@]}"; do
  echo "${script}"
  "${script}"
done
