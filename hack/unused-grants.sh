#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares what the manifests grant to the daemon with what it used in the end-to-end tests, and
# fails if a grant was never used. Each folder of tests adds the files <folder>.granted and
# <folder>.used to DIRECTORY, with one grant per line, if E2E_PRIVILEGES names it.
#
# Usage: hack/unused-grants.sh DIRECTORY

set -o errexit -o nounset -o pipefail
export LC_ALL=C

# Grants that the daemon does not use in the tests.
explained=(
  'list configmaps/extension-apiserver-authentication' # for API servers without streaming lists (WatchList)
  'list namespaces'                                    # as above
  'list pods'                                          # as above
  'list replicasets.apps'                              # as above
)

granted="$(sort -u -- "$1"/*.granted)"
used="$(sort -u -- "$1"/*.used)"
# Admission requires the update of finalizers from a controller whose objects own others, so that
# no request shows its use. See TestFinalizersGrantIsNeeded.
unused="$(comm -23 <(echo "${granted}") <(printf '%s\n' "${used}" "${explained[@]}" | sort -u) |
  sed -E '/^update [^.]*\/finalizers(\.|$)/d; s/.*/The daemon may &, but never did in any test: remove the grant, or explain it in hack\/unused-grants.sh/')"
gone="$(comm -13 <(echo "${granted}") <(printf '%s\n' "${explained[@]}" | sort -u) |
  sed 's/.*/hack\/unused-grants.sh explains why the daemon may &, but that is not granted: delete the line/')"
if [[ -n "${unused}${gone}" ]]; then
  printf '%s\n' "${unused}" "${gone}" | sed '/^$/d' >&2
  exit 1
fi
echo "privileges: the daemon has $(wc -l <<<"${granted}") rights; all are used or explained"
