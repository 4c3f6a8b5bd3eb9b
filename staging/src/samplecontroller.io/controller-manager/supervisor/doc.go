// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs the enabled controllers of a process, each by itself,
// for one term of leadership at a time.
//
// [Supervisor.Run] starts them, starts again with backoff one that fails, and at
// the end of the term waits for all of them. A controller that fails or panics
// stops no other. Each has a health check that tells its state, the reason and
// since when.
package supervisor
