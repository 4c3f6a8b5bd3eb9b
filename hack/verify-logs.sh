#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the product logs through the logger of its context and not through
# klog's global functions: only so does a line say which controller it is from. And
# that messages begin with a capital and keys are lowerCamelCase, so that one can search
# for them.
#
# Usage: hack/verify-logs.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

global='\bklog\.(V|Background|TODO|(Info|Warning|Error|Fatal|Exit)[A-Za-z]*)\('

uses="$(working_tree 'cmd/*.go' 'pkg/*.go' 'staging/*.go' | grep -z -v '_test\.go$' |
  xargs -0 --no-run-if-empty grep -n -E "${global}" || true)"
if [[ -n "${uses}" ]]; then
  echo "${uses}" >&2
  echo "Use the methods of klog.FromContext(ctx) instead." >&2
  exit 1
fi

# http.Error answers a request.
call='\.(Info\(|(?<!http\.)Error\([^,")]+, )"'
message="${call}[^A-Z]"
key="(${call}[^\"]*\",|WithValues\().*\"(?![a-z][A-Za-z]*\")[^\"]*\", "

uses="$(working_tree 'cmd/*.go' 'pkg/*.go' 'staging/*.go' | grep -z -v '_test\.go$' |
  xargs -0 --no-run-if-empty grep -n -P -e "${message}|${key}" || true)"
if [[ -n "${uses}" ]]; then
  echo "${uses}" >&2
  echo "Begin messages with a capital, and write keys in lowerCamelCase." >&2
  exit 1
fi
