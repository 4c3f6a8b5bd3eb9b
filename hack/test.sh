#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of all modules: short ones, which show each promise once, or all of them,
# or only those that do something bad to what the daemon depends on, or a few end-to-end
# tests on each minor version of Kubernetes. Tests with an API server run side by side,
# each folder on a cluster of its own.
#
# Usage: [RACE=1] hack/test.sh [short|all|faults|matrix]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
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

# The race detector watches unit tests always, and in the run of all tests the daemon with an
# API server. A daemon with it is three times as slow, so those of the end-to-end tests have it
# only with RACE=1. Without it, the flags of hack/build.sh share what the control plane has
# compiled. By -trimpath, all clones share what is compiled.
short=() flags=(-trimpath -gcflags=all=-dwarf=false)
race=(-race "${flags[@]}")
if [[ "${RACE:-}" == 1 ]]; then
  flags=("${race[@]}")
fi
daemon_flags=("${flags[@]}")
if [[ "${what}" == all ]]; then
  daemon_flags=("${race[@]}")
fi
if [[ "${what}" == @(short|matrix) ]]; then
  short=(-short)
fi
# The core set covers examples, installation, writes, roles, elections and the migration
# from sample-controller.
core='^Test(ExamplesAreValid|ExamplesRun|BaseIsAdmitted|WritesFollowChanges|ReplicasAndImage|Rename|Deletion|DaemonRights|FenceAdmitsOnlyHolder|RollingUpgrade|SIGTERMAtAnyMoment|Takeover)$'

# Counts the steps, to show how many are left. Those that failed are listed by their number.
step=0 failed=()
case "${what}" in
  faults) steps=1 ;;
  matrix)
    read -r -a minors < <(go run ./hack/binaries -minors)
    steps="${#minors[@]}"
    ;;
  all) steps=$(($(product_modules | wc -l) + 5)) ;;
  *) steps=$(($(product_modules | wc -l) + 3)) ;;
esac

# tests runs the tests of packages in a module.
tests() { # STEP MODULE ARGUMENT...
  local step="$1" module="$2"
  shift 2
  (cd "${module}" && "${gotestsum}" --format pkgname-and-test-fails --hide-summary skipped \
    --jsonfile "${output}/${step}.json" -- -vet=off "${short[@]}" "$@")
}

# run is one step.
run() { # NAME MODULE ARGUMENT...
  local name="$1"
  shift
  step=$((step + 1))
  echo
  echo "Step ${step} of ${steps} after ${SECONDS} s: ${name}"
  tests "${step}" "$@" || failed["${step}"]="${name}"
}

# begin begins a step beside those that follow. finish waits for all such steps, and prints
# what they have printed.
begun=() names=()
begin() { # NAME MODULE ARGUMENT...
  local name="$1"
  shift
  step=$((step + 1))
  echo
  echo "Step ${step} of ${steps} after ${SECONDS} s, beside the next: ${name}"
  set -m # gives it a process group, to be ended with this script
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

# begin_daemon begins the tests of the daemon, which take the longest and wait more than they
# work. They run in two processes, because a process can have one daemon at a time.
daemon=./cmd/sample-controller-manager/app
begin_daemon() {
  begin "the daemon with an API server, TestA to TestO" . "${daemon_flags[@]}" -count 1 -timeout 60m -run '^Test[A-O]' "${daemon}"
  begin "the daemon with an API server, all other tests" . "${daemon_flags[@]}" -count 1 -timeout 60m -skip '^Test[A-O]' "${daemon}"
}

# reasons prints the failed tests of a step and their messages. It is printed last, because
# often only the end of a long log is at hand.
reasons() { # STEP
  if [[ -e "${output}/$1.json" ]]; then
    "${gotestsum}" --raw-command --format none --hide-summary skipped -- cat "${output}/$1.json" |
      grep -E '^(=== FAIL|panic:|WARNING: DATA RACE)|^ +[a-z0-9_]+_test\.go:[0-9]+: ' | cut -c 1-400 | tail -n 20 || true
  fi
}

# The control plane takes minutes to build the first time, so it is built before the tests.
if [[ "${what}" == matrix ]]; then
  for minor in "${minors[@]}"; do
    export KUBERNETES="${minor}"
    if go run ./hack/binaries; then
      run "a core set on Kubernetes ${minor}" . "${flags[@]}" -count 1 -p 3 -timeout 40m -run "${core}" ./hack/e2e/...
    else
      step=$((step + 1))
      failed["${step}"]="building Kubernetes ${minor}"
    fi
  done
elif [[ "${what}" == faults ]]; then
  go run ./hack/binaries
  FAULTS_PEERS=1 run "faults" . "${flags[@]}" -count 1 -p 2 -timeout 40m -run '^TestFault' ./hack/e2e/...
else
  go run ./hack/binaries
  # Without the race detector, nearly all of the daemon is compiled by now.
  if [[ "${what}" == short ]]; then
    begin_daemon
  fi
  for module in $(product_modules); do
    if [[ "${module}" != . ]]; then
      run "unit tests of ${module#./}" "${module}" "${race[@]}" -timeout 15m ./...
    fi
  done
  run "unit tests of pkg" . "${race[@]}" -timeout 15m ./pkg/...
  if [[ "${what}" == all ]]; then
    begin_daemon
  fi
  mapfile -t others < <(go list ./cmd/... ./hack/... | grep -v "${daemon#.}\$")
  run "the whole on clusters, and the tools" . "${flags[@]}" -count 1 -p 3 -timeout 60m "${others[@]}"
  finish
  if [[ "${what}" == all ]]; then
    run "one small load of the benchmarks" hack/bench -timeout 20m ./...
    run "the linters" hack/tools/lint -timeout 20m ./...
  fi
fi

if [[ "${what}" == all ]] && ! go run ./hack/e2e/unused "${E2E_PRIVILEGES}"; then
  failed[0]="no right is granted for nothing"
fi
if [[ -s "${FAULTS_TABLE}" ]]; then
  cat "${FAULTS_TABLE}"
fi
if ((${#failed[@]})); then
  printf '\nFailed after %d s; all output is in %s:\n' "${SECONDS}" "${output}" >&2
  for i in "${!failed[@]}"; do
    echo "    ${failed[i]}" >&2
    reasons "${i}" >&2
  done
  exit 1
fi
printf '\nPassed after %d s.\n' "${SECONDS}"
