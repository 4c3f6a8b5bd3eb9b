// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaders finds, in an API server's audit log, what replicas that elect a
// leader by a Lease must never do: write without leading, take the Lease of another,
// write on after giving it up.
//
// [Check] knows nothing of how the replicas elect: what it looks at is what the API
// server was asked for and when, by its one clock, so that it can be turned on any
// program. Replicas are told apart by their credentials: each needs a token of its
// own. The audit log must have the bodies of requests for Leases, and no event may be
// missing, which takes the blocking mode.
//
// What it allows where the log leaves a doubt: a write counts by when it was received,
// since it may have been sent before, and a Lease as taken by when the write of it was
// answered, since it may have been committed only then.
package leaders
