#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that nothing in the daemon looks up methods by name at run time, as html/template does.
# The linker would then keep every exported method of every type, which makes the binary and
# its memory half as large again.
#
# Also checks that the daemon does not link port forwarding, nor the kubectl plugin a server.
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
  echo "The linker printed no dependencies: does it still support -dumpdep?" >&2
  exit 1
fi
if grep -o -E '^\S+ -> \S+ <ReflectMethod>' "${tmp}/dependencies" | LC_ALL=C sort -u >"${tmp}/calls"; then
  echo "These functions look up methods by name at run time, which keeps the linker from dropping any method:" >&2
  sed 's/^/    /; s/ <ReflectMethod>//' "${tmp}/calls" >&2
  echo "Remove the import that links them ('go list -deps' lists imports), or find a build tag that excludes it." >&2
  exit 1
fi

# check_packages fails if a command links a package that matches a pattern.
check_packages() { # COMMAND PATTERN
  # Not piped into grep -q, which would kill go list with SIGPIPE.
  GOWORK=off go list -deps "./cmd/$1" >"${tmp}/packages"
  if grep -E "$2" "${tmp}/packages" >"${tmp}/found"; then
    echo "$1 must not link these packages; 'go mod why' shows what imports them:" >&2
    sed 's/^/    /' "${tmp}/found" >&2
    exit 1
  fi
}
check_packages sample-controller-manager '^(github.com/gorilla/websocket|github.com/moby/spdystream|k8s.io/client-go/(tools/portforward|transport/spdy))(/|$)'
check_packages kubectl-scm '^(k8s.io/apiserver|samplecontroller.io/(api|client-go|controller-manager/(manager|server)))(/|$)'
