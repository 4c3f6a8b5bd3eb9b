# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Shared by the verify scripts of generated files. Source it from a script whose working
# directory is the root of the repository.

source hack/lib/files.sh

# verify_generated SCRIPT runs an update script in a copy of the working tree and fails if the
# copy changes. It does not modify the working tree.
verify_generated() (
  script="$1"
  tmp="$(mktemp -d)"
  trap 'rm -rf "${tmp}"' EXIT

  mkdir "${tmp}/tree" "${tmp}/updated"
  working_tree . | tar --create --null --files-from=- | tar --extract --directory="${tmp}/tree"
  cp -R "${tmp}/tree/." "${tmp}/updated"

  if ! "${tmp}/updated/${script}" >"${tmp}/log" 2>&1; then
    cat "${tmp}/log" >&2
    echo "${script} failed (see above). Fix it first." >&2
    return 1
  fi
  if ! (cd "${tmp}" && diff --recursive --new-file --unified tree updated) >&2; then
    echo "Generated files are not up to date. Run 'make update' (or only ${script}) and commit the result." >&2
    return 1
  fi
)
