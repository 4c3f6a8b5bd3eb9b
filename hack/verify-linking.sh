#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that nothing in the daemon calls methods by names that only a running process
# knows, as html/template does. Where something does, the linker keeps every exported
# method of every type, and the binary and its memory are half as large again.
#
# Also checks that the daemon links no port-forwarding, and the kubectl plugin no server.
#
# Usage: hack/verify-linking.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT

OUTPUT="${tmp}/binary" LDFLAGS=-dumpdep hack/build.sh 2>"${tmp}/dependencies" || {
  grep -v -e ' -> ' "${tmp}/dependencies" >&2
  exit 1
}
if ! grep -q '^main.main -> ' "${tmp}/dependencies"; then
  echo "The linker told of no dependencies: does it still know -dumpdep?" >&2
  exit 1
fi
if grep -o -E '^\S+ -> \S+ <ReflectMethod>' "${tmp}/dependencies" | LC_ALL=C sort -u >"${tmp}/calls"; then
  echo "These call methods by name, of whatever type; the linker then drops none of any:" >&2
  sed 's/^/    /; s/ <ReflectMethod>//' "${tmp}/calls" >&2
  echo "Do without what links them: what is imported says 'go list -deps', and whether a build tag leaves it out its documentation." >&2
  exit 1
fi

# check_packages fails if a command links a package that matches a pattern.
check_packages() { # COMMAND PATTERN
  # Not piped into grep -q, which would end go list early, by a signal.
  GOWORK=off go list -deps "./cmd/$1" >"${tmp}/packages"
  if grep -E "$2" "${tmp}/packages" >"${tmp}/found"; then
    echo "$1 must not link these packages; 'go mod why' shows what imports them:" >&2
    sed 's/^/    /' "${tmp}/found" >&2
    exit 1
  fi
}
check_packages sample-controller-manager '^(github.com/gorilla/websocket|github.com/moby/spdystream|k8s.io/client-go/(tools/portforward|transport/spdy))(/|$)'
check_packages kubectl-scm '^(k8s.io/apiserver|samplecontroller.io/(api|client-go|controller-manager/(manager|server)))(/|$)'
