// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foo is foo-controller: it keeps the Deployment that each Foo names, and
// writes into the Foo's status what has become of it.
//
// Here is only what Foos have of their own: what a Foo wants, and how its status is
// compared and written. What enqueues the controller and what it does then is in
// [samplecontroller.io/sample-controller-manager/pkg/workload], which serves every
// kind that keeps a Deployment.
package foo
