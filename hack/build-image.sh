#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the container image for all platforms as an OCI archive. An SBOM of each binary is
# attached to its image as a referrer, and also lies beside the archive. Builds are reproducible:
# a commit always gives the same bytes. It needs only Go, neither a container engine nor root.
#
# Usage: hack/build-image.sh
#
# Environment:
#   IMAGE      name and tag of the image (default sample-controller-manager:latest, with
#              FIPS=1 sample-controller-manager:latest-fips)
#   OUTPUT     the archive (default bin/sample-controller-manager.tar, with FIPS=1
#              bin/sample-controller-manager-fips.tar)
#   PLATFORMS  the platforms to build for (default "linux/amd64 linux/arm64")
#   FIPS       if 1, builds with the validated Go Cryptographic Module, in FIPS 140-3 mode

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/version.sh

suffix='' cryptography=standard
if fips; then
  suffix=-fips cryptography="FIPS 140-3, Go Cryptographic Module ${fips_module}"
fi
image="${IMAGE:-sample-controller-manager:latest${suffix}}"
archive="${OUTPUT:-bin/sample-controller-manager${suffix}.tar}"
read -r -a platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64}"
[[ "$(version_ldflags)" =~ gitVersion=([^ ]+) ]] && version="${BASH_REMATCH[1]}"
pin_toolchain

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
mkdir -p "$(dirname "${archive}")"
GOWORK=off go build -C hack/tools/release -o "${tmp}/release" .
"${tmp}/release" texts sample-controller-manager "${platforms[@]}" >"${tmp}/licenses.txt"

binaries=()
for platform in "${platforms[@]}"; do
  os="${platform%/*}" architecture="${platform#*/}"
  binary="${tmp}/${os}-${architecture}"
  GOOS="${os}" GOARCH="${architecture}" RELEASE=1 OUTPUT="${binary}" hack/build.sh >/dev/null
  bom="${archive%.tar}-${os}-${architecture}.cdx.json"
  "${tmp}/release" sbom -version "${version}" "${binary}" >"${tmp}/bom"
  mv "${tmp}/bom" "${bom}"
  binaries+=("${platform}=${binary},${bom}")
  echo "Wrote the SBOM for ${platform}: ${bom}"
done

digest="$("${tmp}/release" archive -image "${image}" -version "${version}" -licenses "${tmp}/licenses.txt" -output "${tmp}/archive" \
  -cryptography "${cryptography}" -created "$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
  -revision "$(git rev-parse --verify HEAD 2>/dev/null || echo unknown)" "${binaries[@]}")"
mv "${tmp}/archive" "${archive}"
echo "Wrote image ${image} (${platforms[*]}): ${archive}, ${digest}, $(wc -c <"${archive}") bytes"
