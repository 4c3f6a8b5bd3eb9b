// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership tests one writer at a time: elections, handovers, lost Leases, and
// the optional fence.
//
// README.md says what each file shows.
package leadership
