// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on the local machine, for `make run`
// and for tests.
//
// [Start] starts etcd and kube-apiserver through controller-runtime's envtest. If Nodes are
// requested, it also starts kube-controller-manager, kube-scheduler and kwok, which simulates
// the Nodes and their kubelets: Pods are scheduled, run and end, but no container ever starts.
// Everything listens on free ports of 127.0.0.1 and is stored in one temporary directory, so
// any number of clusters can run in parallel. Nothing is left behind after [Cluster.Stop], nor
// if the process that called Start dies.
//
// The programs are built from the modules under hack/tools, once for each set of versions. All
// checkouts share them through the user's cache directory; see [Binaries].
//
// It is not a cluster to run containers on or to expose to a network.
package cluster
