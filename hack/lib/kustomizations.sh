# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The kustomizations that make up an installation, in the order in which they are applied. An
# object that several of them have is installed once. Source it from any script.

# shellcheck disable=SC2034 # used by the scripts that source this one
readonly kustomizations=(manifests/cluster manifests/base)

# The last of them is the daemon with its permissions. Only this one is removed again, because
# other daemons in the cluster may need the rest.
# shellcheck disable=SC2034
readonly daemon_kustomization="${kustomizations[-1]}"
