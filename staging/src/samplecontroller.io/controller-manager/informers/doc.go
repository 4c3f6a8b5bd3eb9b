// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers holds the shared informer factories of a process behind one
// handle, so that all controllers share at most one watch for each resource and
// only what enabled controllers asked for is started.
//
// The order is: make the factories, make the [Handle], construct the controllers,
// each of which asks for its informers, then [Handle.Start], and at the end of
// the process [Handle.Shutdown]. Informers live as long as the process: a term
// of leadership begins and ends without them noticing.
package informers
