// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on this machine, for
// `make run` and for tests.
//
// [Start] brings up etcd and kube-apiserver through controller-runtime's
// envtest and, when Nodes are wanted, kube-controller-manager, kube-scheduler
// and kwok, which plays the Nodes and their kubelets: Pods are scheduled, run
// and end, but no container ever starts. Everything listens on 127.0.0.1 on
// free ports and lies in one temporary directory, so that any number of
// clusters may run side by side. [Cluster.Stop] leaves nothing behind; neither
// does the death of the process that called Start.
//
// The programs are built from the modules under hack/tools, once for each set
// of versions, and shared by all checkouts through the user's cache directory;
// see [Binaries].
//
// What it is not: a cluster to run containers on, or one to expose to a network.
package cluster
