// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faulty is the daemon with one more controller, which does what a controller
// must not, so that tests can see what that does to the others. A test makes its own
// binary that daemon, by [Main].
//
// The faulty-controller is told what to do by objects. The ConfigMaps of any namespace
// are its own; the sync of one does what data.fault says, and is an ordinary one
// where that says nothing:
//
//	panic   the sync panics
//	hang    the sync waits until its context ends
//	stuck   the sync minds no context: it ends when the fault is taken away
//	fail    the controller's Run returns an error
//	crash   the controller's Run panics
//
// It also watches Foos, by the informer that all share: each enqueues the ConfigMap of its
// name. Its event handler does what the annotation "fault" of the Foo says:
//
//	panic   it panics
//	slow    it takes a second
package faulty
