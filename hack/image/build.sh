#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the container image for all its platforms, as an OCI archive, and beside it a
# bill of materials of each binary. A commit always builds to the same bytes, wherever,
# whenever and by whom. Nothing is needed but Go: no container engine, no root.
#
# Usage: hack/image/build.sh
#
# Environment:
#   IMAGE      name and tag of the image (default sample-controller-manager:latest)
#   OUTPUT     the archive (default bin/sample-controller-manager.tar)
#   PLATFORMS  the platforms to build for (default "linux/amd64 linux/arm64")

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source hack/lib/version.sh

image="${IMAGE:-sample-controller-manager:latest}"
archive="${OUTPUT:-bin/sample-controller-manager.tar}"
read -r -a platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64}"
[[ "$(version_ldflags)" =~ gitVersion=([^ ]+) ]] && version="${BASH_REMATCH[1]}"

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
mkdir -p "$(dirname "${archive}")"
GOWORK=off go build -C hack/tools/image -o "${tmp}/image" .
"${tmp}/image" texts >"${tmp}/licenses.txt"

binaries=()
for platform in "${platforms[@]}"; do
  os="${platform%/*}" architecture="${platform#*/}"
  binary="${tmp}/${os}-${architecture}"
  GOOS="${os}" GOARCH="${architecture}" RELEASE=1 OUTPUT="${binary}" hack/build.sh >/dev/null
  binaries+=("${platform}=${binary}")
  bom="${archive%.tar}-${os}-${architecture}.cdx.json"
  "${tmp}/image" sbom -version "${version}" "${binary}" >"${tmp}/bom"
  mv "${tmp}/bom" "${bom}"
  echo "${bom} says what the binary for ${platform} is made of"
done

digest="$("${tmp}/image" archive -name "${image}" -version "${version}" -licenses "${tmp}/licenses.txt" -output "${tmp}/archive" \
  -created "$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
  -revision "$(git rev-parse --verify HEAD 2>/dev/null || echo unknown)" "${binaries[@]}")"
mv "${tmp}/archive" "${archive}"
echo "${image} (${platforms[*]}) is in ${archive}: ${digest}, $(wc -c <"${archive}") bytes"
