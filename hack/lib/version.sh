# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Determines the version to stamp into the binary, and the Go release to build it with. Works
# without git, without tags and in a shallow clone: unknown parts are reported as "unknown".
# Source it from a script whose working directory is the root of the repository.

# first_version is the base version of commits that come before the first tag.
readonly first_version="v0.2.0-alpha.0"

# fips_module is the version of the Go Cryptographic Module in builds with FIPS=1.
readonly fips_module="v1.0.0"

# fips reports whether the variable FIPS asks for a FIPS 140-3 build.
fips() {
  case "${FIPS:-}" in
    1) return 0 ;;
    '' | 0) return 1 ;;
  esac
  echo "FIPS=${FIPS} is invalid: must be 1 or 0." >&2
  exit 1
}

# pin_toolchain makes the go command use the Go release in go.mod, even if a newer one is
# installed or an older one would do. Another release compiles to other bytes.
pin_toolchain() {
  GOTOOLCHAIN="$(sed -n 's/^toolchain //p' go.mod)"
  export GOTOOLCHAIN
}

# semantic_version turns the output of `git describe` into a semantic version. The output is a
# tag, a tag with distance and commit, or just a commit if there is no tag.
semantic_version() { # DESCRIPTION
  sed -E \
    -e 's/^[0-9a-f]+$/'"${first_version}"'+&/' \
    -e 's/^(v[^-]+-.+)-([0-9]+)-g([0-9a-f]+)$/\1.\2+\3/' \
    -e 's/^(v[^-]+)-([0-9]+)-g([0-9a-f]+)$/\1-\2+\3/' <<<"$1"
}

# version_ldflags prints the linker flags that stamp the version of the commit
# into k8s.io/component-base and k8s.io/client-go. The date is the commit's, so
# that builds are reproducible. BUILD_VERSION, if set, overrides the version. A FIPS build adds
# "fips" to the build metadata.
version_ldflags() {
  local commit version tree_state date
  if commit="$(git rev-parse --verify 'HEAD^{commit}' 2>/dev/null)"; then
    version="$(semantic_version "$(git describe --tags --always --abbrev=14 --match='v[0-9]*')")"
    date="$(TZ=UTC git log -1 --date='format-local:%Y-%m-%dT%H:%M:%SZ' --format=%cd)"
    tree_state=clean
    if [[ -n "$(git status --porcelain)" ]]; then
      tree_state=dirty
      # A semantic version has at most one +, which starts the build metadata.
      if [[ "${version}" == *+* ]]; then version+="-dirty"; else version+="+dirty"; fi
    fi
  else
    commit=unknown version="${first_version}+unknown" tree_state=unknown date=1970-01-01T00:00:00Z
  fi

  version="${BUILD_VERSION:-${version}}"
  if fips; then
    if [[ "${version}" == *+* ]]; then version+="-fips"; else version+="+fips"; fi
  fi

  local major minor
  IFS=.- read -r major minor _ <<<"${version#v}"
  if [[ "${version}" == *[-+]* ]]; then
    minor+="+"
  fi

  local package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s=%s ' \
      "${package}.gitVersion" "${version}" \
      "${package}.gitMajor" "${major}" \
      "${package}.gitMinor" "${minor}" \
      "${package}.gitCommit" "${commit}" \
      "${package}.gitTreeState" "${tree_state}" \
      "${package}.buildDate" "${date}"
  done
}
