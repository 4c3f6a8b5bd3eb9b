#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the container image: with Docker where its engine answers, else with
# buildah, which needs no engine and writes an OCI archive. Where buildah is
# missing, root on Debian and its kin gets it installed.
#
# Usage: hack/image/build.sh
#
# Environment:
#   IMAGE   name and tag of the image (default sample-controller-manager:latest)
#   OUTPUT  the archive, where there is no engine (default bin/sample-controller-manager.tar)
#   GOARCH  the architecture to build for (default that of this machine)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

image="${IMAGE:-sample-controller-manager:latest}"
archive="${OUTPUT:-bin/sample-controller-manager.tar}"
GOARCH="$(go env GOARCH)"
export GOOS=linux GOARCH

tmp="$(mktemp -d)"
# The root directory of an image is read-only, to its owner too.
trap 'chmod -R u+w "${tmp}" && rm -rf "${tmp}"' EXIT
context="${tmp}/context"
# Whoever builds, and with whatever umask: user 65532 must get at the binary.
mkdir "${context}"
RELEASE=1 OUTPUT="${context}/sample-controller-manager" hack/build.sh >/dev/null
chmod 0755 "${context}/sample-controller-manager"

with_docker() {
  docker build --quiet --platform "${GOOS}/${GOARCH}" --file hack/image/Dockerfile --tag "${image}" "${context}" >/dev/null
  docker image inspect --format '{{.Id}} {{.Size}}' "${image}" >"${tmp}/made"
  read -r digest size <"${tmp}/made"
  echo "${image} (${GOOS}/${GOARCH}) is in the Docker engine: ${digest}, ${size} bytes"
}

# The storage is its own, so that it neither fills nor depends on the user's. The
# driver vfs and the isolation chroot work without privileges.
buildah_alone() {
  buildah --root "${tmp}/storage" --runroot "${tmp}/run" --storage-driver vfs "$@"
}

# qualified gives a name that has no registry the one that container runtimes
# read into it, or they would not find the image under the name that a Pod uses.
qualified() { # IMAGE
  case "$1" in
  *[.:]*/* | localhost/*) echo "$1" ;;
  */*) echo "docker.io/$1" ;;
  *) echo "docker.io/library/$1" ;;
  esac
}

with_buildah() {
  local timestamp
  # The commit's, so that a commit always builds to the same image.
  timestamp="$(git log -1 --format=%ct 2>/dev/null || echo 0)"
  buildah_alone bud --quiet --isolation chroot --platform "${GOOS}/${GOARCH}" --timestamp "${timestamp}" \
    --file hack/image/Dockerfile --tag "${image}" "${context}" >/dev/null
  mkdir -p "$(dirname "${archive}")"
  buildah_alone push --quiet --digestfile "${tmp}/digest" "${image}" "oci-archive:${tmp}/archive:$(qualified "${image}")"
  mv "${tmp}/archive" "${archive}"
  echo "${image} (${GOOS}/${GOARCH}) is in ${archive}: $(cat "${tmp}/digest"), $(wc -c <"${archive}") bytes"
}

if docker info >/dev/null 2>&1; then
  with_docker
  exit
fi

if ! command -v buildah >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
  echo "No Docker engine answers: installing buildah." >&2
  export DEBIAN_FRONTEND=noninteractive
  log="$({ apt-get update && apt-get install --yes --no-install-recommends buildah; } 2>&1 </dev/null)" ||
    echo "${log}" >&2
fi
if ! command -v buildah >/dev/null; then
  echo "Neither does a Docker engine answer nor is there buildah. Start Docker, or install your" >&2
  echo "distribution's package buildah, for example with 'apt-get install buildah' as root." >&2
  exit 1
fi
with_buildah
