#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds a release of the current commit: the image with its SBOMs, the manifests, the kubectl
# plugin, release notes and checksums. The same commit gives the same bytes everywhere. It pushes, tags and signs nothing.
#
# Usage: VERSION=v1.2.3 hack/build-release.sh
#
# Environment:
#   VERSION     the version to release; .github/CHANGELOG.md must have a section about it
#   IMAGE       registry and name that the image will have (default: the one in
#               .github/ADDRESSES.md, if any)
#   REPOSITORY  URL of the repository (default: the one in .github/ADDRESSES.md)
#   FIPS        if 1, builds the FIPS 140-3 variant. Its tag is VERSION-fips.
#
# It replaces the directory dist.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/kustomizations.sh
source hack/lib/version.sh

readonly platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)

# address prints an address from the table in .github/ADDRESSES.md. A dash stands for none.
address() { # NAME
  sed -n -E "s/^\| $1 \| ([^ ]+) \|.*/\1/p" .github/ADDRESSES.md | sed 's/^-$//'
}

version="${VERSION:-}"
image="${IMAGE:-$(address image)}" repository="${REPOSITORY:-$(address repository)}"
tag="${version}"
if fips; then
  tag+=-fips
fi
if [[ -z "${version}" ]]; then
  echo "VERSION is missing. For example: make release VERSION=v1.2.3" >&2
  exit 2
fi
if [[ "${image}" == *@* || "${image##*/}" == *:* ]]; then
  echo "IMAGE=${image} is invalid: must be a registry and a name, without a tag. The tag is ${tag}." >&2
  exit 2
fi
pin_toolchain

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
GOWORK=off go build -C hack/tools/release -o "${tmp}/release" .
"${tmp}/release" notes -version "${version}" >/dev/null # so that a forgotten section is found at once
if [[ -n "$(git status --porcelain)" ]]; then
  git status --short >&2
  echo "A release is built from a commit. Commit, stash or remove these changes first." >&2
  exit 1
fi

mkdir -p "${tmp}/dist" "${tmp}/builds"
echo "Building the image (minutes the first time)"
# The archive names the image as install.yaml does.
BUILD_VERSION="${version}" IMAGE="${image:-sample-controller-manager}:${tag}" PLATFORMS='' \
  OUTPUT="${tmp}/dist/sample-controller-manager-${tag}.tar" hack/build-image.sh >"${tmp}/image"
"${tmp}/release" texts kubectl-scm "${platforms[@]}" >"${tmp}/builds/licenses.txt"
for platform in "${platforms[@]}"; do
  echo "Building kubectl-scm for ${platform}"
  binary="${tmp}/builds/${platform/\//-}/kubectl-scm"
  if [[ "${platform}" == windows/* ]]; then
    binary+=.exe
  fi
  GOOS="${platform%/*}" GOARCH="${platform#*/}" RELEASE=1 BUILD_VERSION="${version}" OUTPUT="${binary}" hack/build.sh kubectl-scm >/dev/null
done

"${tmp}/release" write -version "${version}" -tag "${tag}" -image "${image}" -repository "${repository}" \
  -digest "$(grep -o 'sha256:[0-9a-f]*' "${tmp}/image")" \
  -variables "VERSION=${version} IMAGE=${image} REPOSITORY=${repository} FIPS=${FIPS:-0}" \
  -created "$(git log -1 --format=%ct)" -revision "$(git rev-parse HEAD)" \
  -builds "${tmp}/builds" -output "${tmp}/dist" "${kustomizations[@]}"

rm -rf dist
mv "${tmp}/dist" dist
echo "Wrote dist:"
(cd dist && wc -c -- * | sed '$d')
sed -n '2,/^[^#]/s/^# \?//p' dist/install.yaml
if [[ "${repository}" == *.invalid/* ]]; then
  echo
  echo "The plugin's manifest scm.yaml names ${repository}, a placeholder: see .github/ADDRESSES.md."
fi
if [[ "$(git tag --points-at HEAD --list "${version}")" == "" ]]; then
  echo
  echo "The commit has no tag ${version} yet. To publish the release: git tag --sign ${version}"
fi
