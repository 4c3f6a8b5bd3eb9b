// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest holds what tests on a cluster have in common.
package clustertest
