# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The version that is stamped into the binary. To be sourced by scripts that
# stand in the root of the repository. Nothing here fails without git, without
# tags or in a shallow clone: what is unknown is said to be.

# first_version is the version on the way to which commits are that no tag precedes.
readonly first_version="v0.1.0-alpha.0"

# semantic_version makes a semantic version of what `git describe` prints: a
# tag, a tag with the distance and the commit, or, where there is no tag, a commit.
semantic_version() { # DESCRIPTION
  sed -E \
    -e 's/^[0-9a-f]+$/'"${first_version}"'+&/' \
    -e 's/^(v[^-]+-.+)-([0-9]+)-g([0-9a-f]+)$/\1.\2+\3/' \
    -e 's/^(v[^-]+)-([0-9]+)-g([0-9a-f]+)$/\1-\2+\3/' <<<"$1"
}

# version_ldflags prints the linker flags that stamp the version of the commit
# into k8s.io/component-base and k8s.io/client-go. The date is the commit's, so
# that a commit always builds to the same binary. BUILD_VERSION, if it is set,
# stands in for the version.
version_ldflags() {
  local commit version tree_state date
  if commit="$(git rev-parse --verify 'HEAD^{commit}' 2>/dev/null)"; then
    version="$(semantic_version "$(git describe --tags --always --abbrev=14 --match='v[0-9]*')")"
    date="$(TZ=UTC git log -1 --date='format-local:%Y-%m-%dT%H:%M:%SZ' --format=%cd)"
    tree_state=clean
    if [[ -n "$(git status --porcelain)" ]]; then
      tree_state=dirty
      # Build metadata begins with the only + in a semantic version.
      if [[ "${version}" == *+* ]]; then version+="-dirty"; else version+="+dirty"; fi
    fi
  else
    commit=unknown version="${first_version}+unknown" tree_state=unknown date=1970-01-01T00:00:00Z
  fi

  version="${BUILD_VERSION:-${version}}"

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
  echo "-X k8s.io/component-base/version/verflag.programName=sample-controller-manager"
}
