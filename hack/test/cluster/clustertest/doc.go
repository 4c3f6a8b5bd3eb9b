// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest contains helpers that tests with a cluster share.
package clustertest
