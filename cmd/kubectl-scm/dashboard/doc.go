// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard is the local web page of kubectl scm dashboard.
//
// [New] makes a dashboard, whose goroutines [Dashboard.Run] starts and joins: each reads one source, such as the Lease,
// and keeps what it last read, when, and why it now fails. A page is made of fragments, which are HTML rendered from a
// [snapshot]. The browser gets the fragments again, through Server-Sent Events, when they change.
package dashboard
