#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks go.mod and go.sum of all modules: they are tidy and match the module cache. The
# product's modules must agree on one Go version and one minor version of Kubernetes, and find
# each other in the staging directory by relative replace directives. There must be no go.work,
# because modules must build in the form in which they are published. Modules under hack may pin
# other versions, except for those that the daemon shares with the control plane of a local
# cluster. All modules must agree on one toolchain, which builds the release.
#
# Usage: hack/verify-modules.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/modules.sh

failed=0
complain() {
  printf '%s\n' "$@" '' >&2
  failed=1
}

check_tidy() { # MODULE
  local diff
  if ! diff="$(go -C "$1" mod tidy -diff 2>&1)"; then
    complain "$(sed -n '1,40p' <<<"${diff}")" \
      "$1/go.mod is not tidy. Run 'make update' (or only hack/update-modules.sh)."
  fi
}

check_sums() { # MODULE
  local log
  if ! log="$(go -C "$1" mod verify 2>&1)"; then
    complain "${log}" \
      "$1: the module cache does not match go.sum. Run 'go clean -modcache' and try again."
  fi
}

check_replacements() { # MODULE
  local path replacement dir staging
  staging="$(pwd -P)/staging/src"
  while read -r path replacement dir; do
    if [[ "${path}" != samplecontroller.io/* ]]; then
      complain "$1/go.mod must not replace ${path}: importers of the module do not get the replacement."
    elif [[ "${replacement}" != ./* && "${replacement}" != ../* || "${dir}" != "${staging}/${path}" ]]; then
      complain "$1/go.mod must replace ${path} by the relative path of staging/src/${path}, not by ${replacement}."
    fi
  done < <(go -C "$1" list -m -f '{{if .Replace}}{{.Path}} {{.Replace.Path}} {{.Dir}}{{end}}' all)
}

go_versions() {
  for module in $(product_modules); do
    go -C "${module}" list -m -f "{{.GoVersion}} ${module}/go.mod"
  done
}

toolchains() {
  local module
  for module in $(product_modules) $(tools_modules); do
    echo "$(sed -n 's/^toolchain //p' "${module}/go.mod") ${module}/go.mod"
  done
}

# Modules of k8s.io that are released with Kubernetes have versions v0.<minor>.<patch>.
kubernetes_versions() {
  for module in $(product_modules); do
    go -C "${module}" mod edit -print |
      sed -n -E "s#^(require)?\s+(k8s\.io/\S+) (v0\.[1-9][0-9]*)\.[0-9]+( .*)?\$#\3 ${module}/go.mod: \2#p"
  done
}

# requirements prints what a go.mod requires as lines "<module> <version>".
requirements() { # MODULE
  go -C "$1" mod edit -print | sed -n -E 's#^(require)?\s+(\S+) (v\S+).*$#\2 \3#p' | LC_ALL=C sort
}

# check_same takes lines "<value> <place>". All values must be equal.
check_same() { # WHAT LINES
  local values
  values="$(cut -d ' ' -f 1 <<<"$2" | LC_ALL=C sort -u | wc -l)"
  if ((values != 1)); then
    complain "$(LC_ALL=C sort <<<"$2")" \
      "The modules must agree on $1. Set the same one in each go.mod, then run 'make update'."
  fi
}

for module in $(product_modules) $(tools_modules); do
  check_tidy "${module}"
  check_sums "${module}"
done
for module in $(product_modules); do
  check_replacements "${module}"
done
check_same "a Go version" "$(go_versions)"
check_same "a toolchain" "$(toolchains)"
check_same "a minor version of Kubernetes" "$(kubernetes_versions)"
different="$(LC_ALL=C join <(requirements .) <(requirements hack/tools/controlplane) | awk '$2 != $3')"
if [[ -n "${different}" ]]; then
  complain "${different}" \
    "go.mod and hack/tools/controlplane/go.mod must require the same versions, or 'make run' compiles what uses them twice."
fi
if [[ -e go.work ]]; then
  complain "Remove go.work: it hides missing requirements in a go.mod."
fi

exit "${failed}"
