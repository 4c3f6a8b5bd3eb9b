#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of all modules:
#   short   the short tests, which cover each promise once (the default)
#   all     all tests, including long fault and stress tests
#   faults  only the tests that inject faults into the daemon's dependencies
#   matrix  a core set of end-to-end tests on each supported minor version of Kubernetes
# Folders of tests that need an API server run in parallel, each on its own cluster.
#
# Usage: [RACE=1] hack/test.sh [short|all|faults|matrix]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/flags.sh
source hack/lib/modules.sh

what="${1:-short}"
if (($# > 1)) || [[ "${what}" != @(short|all|faults|matrix) ]]; then
  grep '^# Usage' "${BASH_SOURCE[0]}" >&2
  exit 2
fi

output="${PWD}/_output/tests"
rm -rf "${output}"
mkdir -p "${output}/privileges"
FAULTS_TABLE="${output}/faults.txt" E2E_PRIVILEGES="${output}/privileges"
export FAULTS_TABLE E2E_PRIVILEGES
gotestsum="${PWD}/_output/gotestsum"
go -C hack/tools/test build -o "${gotestsum}" gotest.tools/gotestsum

# In the run of all tests, the unit tests and the daemon of the integration tests use the race detector. With it,
# everything is compiled again, and a daemon is three times as slow, so all others use it only with RACE=1.
short=() flags=()
if [[ "${RACE:-}" == 1 ]]; then
  flags=(-race)
fi
unit_flags=("${flags[@]}")
if [[ "${what}" == all ]]; then
  unit_flags=(-race)
fi
if [[ "${what}" == @(short|matrix) ]]; then
  short=(-short)
fi
# The core set covers examples, installation, writes, roles, elections, the migration from
# sample-controller, and the manifests as the kubectl of each version builds them.
core='^Test(BrokenReferencesAreFound|ExamplesAreValid|ExamplesRun|BaseIsAdmitted|WritesFollowChanges|ReplicasAndImage|Rename|Deletion|DaemonRights|FenceAdmitsOnlyHolder|RollingUpgrade|SIGTERMAtAnyMoment|Takeover)$'

# Counts the steps to show the progress. failed maps the number of a failed step to its name.
step=0 failed=()
case "${what}" in
  faults) steps=1 ;;
  matrix)
    read -r -a minors < <(go run ./hack/tools/binaries -minors)
    steps="${#minors[@]}"
    ;;
  all) steps=$(($(product_modules | wc -l) + 4)) ;;
  *) steps=$(($(product_modules | wc -l) + 2)) ;;
esac

# tests runs the tests of packages in a module.
tests() { # STEP MODULE ARGUMENT...
  local step="$1" module="$2" cgo=0
  shift 2
  if [[ "$1" == -race ]]; then
    cgo=1
  fi
  (cd "${module}" && CGO_ENABLED="${cgo}" "${gotestsum}" --format pkgname-and-test-fails --hide-summary skipped \
    --jsonfile "${output}/${step}.json" -- -vet=off "${short[@]}" "$@")
}

# run runs one step.
run() { # NAME MODULE ARGUMENT...
  local name="$1"
  shift
  step=$((step + 1))
  echo
  echo "Step ${step} of ${steps} after ${SECONDS} s: ${name}"
  tests "${step}" "$@" || failed["${step}"]="${name}"
}

# begin starts a step in the background. finish waits for all such steps and prints their
# output.
begun=() names=()
begin() { # NAME MODULE ARGUMENT...
  local name="$1"
  shift
  step=$((step + 1))
  echo
  echo "Step ${step} of ${steps} after ${SECONDS} s, in the background: ${name}"
  set -m # gives it a process group, which the trap ends with this script
  tests "${step}" "$@" >"${output}/${step}.txt" 2>&1 &
  set +m
  begun["${step}"]="$!" names["${step}"]="${name}"
}
trap 'for group in "${begun[@]}"; do kill -- "-${group}" 2>/dev/null || true; done' EXIT
finish() {
  local i
  for i in "${!begun[@]}"; do
    echo
    echo "Step ${i} of ${steps}: ${names[i]}"
    wait "${begun[i]}" || failed["${i}"]="${names[i]}"
    cat "${output}/${i}.txt"
  done
}

# begin_integration starts the tests of the daemon with an API server, which mostly wait. In the run of all tests they
# build the daemon with the race detector.
begin_integration() {
  local race="${RACE:-}"
  if [[ "${what}" == all ]]; then
    race=1
  fi
  RACE="${race}" begin "integration tests" . "${flags[@]}" -count 1 -p 3 -timeout 60m ./hack/test/integration/...
}

# reasons prints the failed tests of a step and their messages. It comes last, because often
# only the end of a long log is at hand.
reasons() { # STEP
  if [[ -e "${output}/$1.json" ]]; then
    "${gotestsum}" --raw-command --format none --hide-summary skipped -- cat "${output}/$1.json" |
      grep -E '^(=== FAIL|panic:|WARNING: DATA RACE)|^ +[a-z0-9_]+_test\.go:[0-9]+: ' | cut -c 1-400 | tail -n 20 || true
  fi
}

# The control plane is built before the tests, because the first build takes minutes.
if [[ "${what}" == matrix ]]; then
  for minor in "${minors[@]}"; do
    export KUBERNETES="${minor}"
    if go run ./hack/tools/binaries; then
      run "a core set on Kubernetes ${minor}" . "${flags[@]}" -count 1 -p 3 -timeout 40m -run "${core}" ./hack/test/e2e/... ./hack/tools/kustomize
    else
      step=$((step + 1))
      failed["${step}"]="building Kubernetes ${minor}"
    fi
  done
elif [[ "${what}" == faults ]]; then
  go run ./hack/tools/binaries
  FAULTS_PEERS=1 run "faults" . "${flags[@]}" -count 1 -p 2 -timeout 40m -run '^TestFault' ./hack/test/e2e/...
else
  go run ./hack/tools/binaries
  # Without the race detector, nearly all of the daemon is already compiled. With it, the daemon is compiled before the
  # integration tests and the unit tests would both do so.
  if [[ "${what}" == all ]]; then
    OUTPUT="${PWD}/_output/e2e-race/sample-controller-manager" RACE=1 hack/build.sh
  fi
  begin_integration
  for module in $(product_modules); do
    if [[ "${module}" != . ]]; then
      run "unit tests of ${module#./}" "${module}" "${unit_flags[@]}" -timeout 15m ./...
    fi
  done
  run "unit tests of pkg" . "${unit_flags[@]}" -timeout 15m ./pkg/...
  # The longest folders start first, so that the run does not wait for them at the end; one of the four only waits. The
  # pages are checked by hack/verify-manual.sh.
  mapfile -t others < <(go list ./hack/test/e2e/{credentials,leadership,objects,faults} ./cmd/... ./hack/... | grep -v -e /hack/test/integration/ -e /manual\$)
  run "end-to-end tests and tools" . "${flags[@]}" -count 1 -p 4 -timeout 60m "${others[@]}"
  finish
  if [[ "${what}" == all ]]; then
    run "a small load of the benchmarks" hack/tools/bench -timeout 20m ./...
    run "tests of the linters" hack/tools/lint -timeout 20m ./...
  fi
fi

if [[ "${what}" == all ]] && ! hack/unused-grants.sh "${E2E_PRIVILEGES}"; then
  failed[0]="unused permissions are granted"
fi
if [[ -s "${FAULTS_TABLE}" ]]; then
  cat "${FAULTS_TABLE}"
fi
if ((${#failed[@]})); then
  printf '\nFailed after %d s (full output in %s):\n' "${SECONDS}" "${output}" >&2
  for i in "${!failed[@]}"; do
    echo "    ${failed[i]}" >&2
    reasons "${i}" >&2
  done
  exit 1
fi
printf '\nPassed after %d s.\n' "${SECONDS}"
