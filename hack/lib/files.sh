# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The files of the working tree. To be sourced by scripts that stand in the root
# of the repository.

# working_tree prints the files that git tracks or would add, each ended by a NUL.
working_tree() { # PATHSPEC...
  git ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' file; do
      # What is deleted but not committed is still in the index.
      if [[ -e "${file}" ]]; then
        printf '%s\0' "${file}"
      fi
    done
}
