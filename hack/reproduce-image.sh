#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the image and its SBOMs twice, in two directories and with different umasks, time
# zones, locales and home directories, and checks that the results are byte-identical. It is not
# part of `make verify`: the first time it compiles the daemon for all platforms for minutes.
#
# Usage: hack/reproduce-image.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/files.sh

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
# These defaults depend on the home directory, which differs between the builds.
GOMODCACHE="$(go env GOMODCACHE)" GOCACHE="$(go env GOCACHE)" GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)"
export GOMODCACHE GOCACHE GOPROXY GOSUMDB

# build builds the working tree at the current commit in a new directory.
build() { # DIRECTORY UMASK
  umask "$2"
  git clone --quiet --shared . "$1"
  working_tree . | tar --create --null --files-from=- | tar --extract --directory="$1"
  "$1/hack/build-image.sh"
}

(build "${tmp}/a" 022)
mkdir "${tmp}/home"
(HOME="${tmp}/home" TZ=Asia/Kathmandu LC_ALL=C build "${tmp}/another/place" 077)

if ! diff --recursive --brief "${tmp}/a/bin" "${tmp}/another/place/bin" >&2; then
  echo "Two builds of the same commit differ: the files are listed above." >&2
  exit 1
fi
(cd "${tmp}/a/bin" && sha256sum -- *)
