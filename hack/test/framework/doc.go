// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework has what the end-to-end tests share: a cluster for each package of tests,
// replicas of the daemon, load, and checks of what the daemon did.
//
// The first use of the cluster starts it, and [Main] stops it. Tests observe the daemon only
// from outside: through the API, the audit log, metrics and exit codes.
package framework
