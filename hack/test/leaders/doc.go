// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaders finds, in an API server's audit log, what replicas that elect a leader with
// a Lease must never do: write without leading, take the Lease of another replica, or write
// after giving it up.
//
// [Check] does not know how the replicas elect a leader. It considers only which requests the
// API server received and when, by the API server's clock, so it works for any program. It
// distinguishes replicas by their credentials, so each needs its own token. The audit log must
// have the bodies of requests for Leases. No event may be missing, which requires the blocking
// mode.
//
// Where the log leaves a doubt, the replica gets the benefit of it. A write counts from when
// it was received, because it may have been sent earlier. A Lease counts as taken from when
// its write was answered, because it may have been committed only then.
package leaders
