#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the README.md of each folder of end-to-end tests is short and has one table row
# for each test file except main_test.go.
#
# Usage: hack/verify-e2e.sh

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() {
  echo "$*" >&2
  failed=1
}

for main in hack/test/e2e/*/main_test.go; do
  folder="$(dirname "${main}")"
  readme="${folder}/README.md"
  if ! grep -q 'framework\.Main' "${main}"; then
    continue # tests without a cluster
  fi
  if [[ ! -f "${readme}" ]]; then
    complain "Write ${readme}: one sentence on the subject, and a table row | \`<file>\` | <what it shows> | for each test file."
    continue
  fi
  files=0
  for file in "${folder}"/*_test.go; do
    name="$(basename "${file}")"
    if [[ "${name}" == main_test.go ]]; then
      continue
    fi
    files=$((files + 1))
    rows="$(grep -c "^| \`${name}\` | [^|]*[^| ] |\$" "${readme}" || true)"
    if ((rows != 1)); then
      complain "${readme} must have one row for ${name}, but has ${rows}. Write: | \`${name}\` | <what it shows> |"
    fi
  done
  # shellcheck disable=SC2016 # the backquotes are Markdown
  while read -r name; do
    if [[ ! -f "${folder}/${name}" ]]; then
      complain "Delete the row of ${name} from ${readme}: there is no such file."
    fi
  done < <(sed -nE 's/^\| `([^`]*)` \|.*/\1/p' "${readme}")
  lines="$(wc -l <"${readme}")"
  if ((lines > files + 15)); then
    complain "Shorten ${readme} from ${lines} to at most $((files + 15)) lines: one sentence and the table."
  fi
done
exit "${failed}"
