#!/usr/bin/env bash

# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs the daemon in the cluster of the current kubectl context, or removes it again.
# Removing keeps manifests/cluster, all objects, and the namespace.
#
# Usage: hack/deploy.sh deploy|undeploy
#
# Environment:
#   IMAGE    the image to deploy, such as registry.example.com/sample-controller-manager:v1.2.3
#   TIMEOUT  how long to wait until it runs (default 120s)

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/kustomizations.sh

# objects writes the objects to install, and prints which cluster is about to change.
objects() { # FLAG... KUSTOMIZATION...
  if ! command -v kubectl >/dev/null; then
    echo "kubectl is not on the PATH. Install it: https://kubernetes.io/docs/tasks/tools" >&2
    exit 1
  fi
  echo "Cluster: context $(kubectl config current-context)"
  GOWORK=off go build -C hack/tools/release -o "${tmp}/release" .
  "${tmp}/release" install "$@" >"${tmp}/objects.yaml"
}

deploy() {
  if [[ -z "${IMAGE:-}" ]]; then
    echo "IMAGE is missing: no registry holds an image of this commit. Build one and push it, or load it on the nodes:" >&2
    echo "  make image IMAGE=registry.example.com/sample-controller-manager:v1.2.3" >&2
    exit 2
  fi
  objects -image "${IMAGE}" "${kustomizations[@]}"
  kubectl apply -f "${tmp}/objects.yaml"
  if ! kubectl rollout status -n sample-controller-manager deployment/sample-controller-manager --timeout="${TIMEOUT:-120s}"; then
    echo "The Deployment is not available. Can the nodes pull ${IMAGE}, or have they loaded it?" >&2
    kubectl get pods -n sample-controller-manager >&2
    exit 1
  fi
}

undeploy() {
  objects -without CustomResourceDefinition,Namespace "${daemon_kustomization}"
  # First, and with its Pods, so that the leader can still release its Lease.
  kubectl delete --ignore-not-found --cascade=foreground -n sample-controller-manager deployment/sample-controller-manager
  kubectl delete --ignore-not-found -f "${tmp}/objects.yaml"
  cat <<'EOF'
Kept: the CRDs and the rest of manifests/cluster, all objects such as Foos with their Deployments
and Pods, and the namespace.
To delete the namespace and all that is in it:
  kubectl delete namespace sample-controller-manager
To delete the rest, with it all such objects, their Deployments and Pods:
  kubectl delete -k manifests/cluster
EOF
}

tmp="$(mktemp -d)"
trap 'rm -rf "${tmp}"' EXIT
case "${1:-}" in
  deploy | undeploy)
    "$1"
    ;;
  *)
    grep '^# Usage' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
