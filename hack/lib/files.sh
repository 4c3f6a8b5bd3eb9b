# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Lists the files of the working tree. Source it from a script whose working directory is the
# root of the repository.

# working_tree prints the files that git tracks or would add, separated by NULs.
working_tree() { # PATHSPEC...
  git ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' file; do
      # A deleted file stays in the index until the deletion is staged.
      if [[ -e "${file}" ]]; then
        printf '%s\0' "${file}"
      fi
    done
}
