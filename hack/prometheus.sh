#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the directory that holds prometheus and promtool: that of the installed ones,
# or one in the user's cache, into which Debian's package is unpacked. It is not
# installed, because that would start a server and bring a web site along.
#
# Usage: hack/prometheus.sh

set -o errexit -o nounset -o pipefail

if installed="$(command -v prometheus)" && [[ -x "$(dirname "${installed}")/promtool" ]]; then
  dirname "${installed}"
  exit
fi

cache="${XDG_CACHE_HOME:-${HOME}/.cache}/sample-controller-manager"
unpacked="${cache}/prometheus"
mkdir -p "${cache}"
exec {lock}>"${unpacked}.lock"
flock "${lock}" # one fetches, the others wait
if [[ ! -x "${unpacked}/usr/bin/prometheus" ]]; then
  tmp="$(mktemp -d "${cache}/prometheus.XXXXXX")"
  trap 'rm -rf "${tmp}"' EXIT

  fetch() {
    cd "${tmp}" &&
      apt-get download prometheus && dpkg-deb --extract prometheus_*.deb tree
  }
  # On a new machine apt knows no packages until it is told to look, which only root may.
  if ! log="$({ (fetch) || { apt-get update && (fetch); }; } 2>&1 </dev/null)"; then
    echo "${log}" >&2
    echo "prometheus and promtool are missing, and Debian's package prometheus could not be fetched: see above." >&2
    echo "Put both into one directory of your PATH." >&2
    exit 1
  fi
  mv "${tmp}/tree" "${unpacked}"
fi
echo "${unpacked}/usr/bin"
