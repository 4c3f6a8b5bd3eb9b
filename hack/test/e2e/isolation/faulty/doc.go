// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faulty is the daemon with an additional, misbehaving controller, so that tests can
// observe the effect on the other controllers. A test binary becomes that daemon by calling
// [Main].
//
// Objects tell the faulty-controller what to do. It syncs the ConfigMaps of all namespaces.
// The sync of a ConfigMap does what data.fault says, and is ordinary without it:
//
//	panic   the sync panics
//	hang    the sync waits until its context ends
//	stuck   the sync ignores its context: it ends when the fault is removed
//	fail    the controller's Run returns an error
//	crash   the controller's Run panics
//
// It also watches Foos, with the shared informer. Each Foo enqueues the ConfigMap of its name.
// The event handler does what the annotation "fault" of the Foo says:
//
//	panic   it panics
//	hang    it ends when the annotation is removed
package faulty
