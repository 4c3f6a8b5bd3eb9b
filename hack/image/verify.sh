#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the image and its bills of materials twice, in two directories, with another
# umask, time zone, language and home, and checks that each byte is the same. It is none of
# `make verify`: the first time, it compiles the daemon for all platforms, for minutes.
#
# Usage: hack/image/verify.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source hack/lib/files.sh

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
# What is found through the home directory is named, as another has none of it.
GOMODCACHE="$(go env GOMODCACHE)" GOCACHE="$(go env GOCACHE)" GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)"
export GOMODCACHE GOCACHE GOPROXY GOSUMDB

# build builds the working tree at the present commit in a directory of its own.
build() { # DIRECTORY UMASK
  umask "$2"
  git clone --quiet --shared . "$1"
  working_tree . | tar --create --null --files-from=- | tar --extract --directory="$1"
  "$1/hack/image/build.sh"
}

(build "${tmp}/a" 022)
mkdir "${tmp}/home"
(HOME="${tmp}/home" TZ=Asia/Kathmandu LC_ALL=C build "${tmp}/another/place" 077)

if ! diff --recursive --brief "${tmp}/a/bin" "${tmp}/another/place/bin" >&2; then
  echo "Two builds of one commit differ: see above which files do." >&2
  exit 1
fi
(cd "${tmp}/a/bin" && sha256sum -- *)
