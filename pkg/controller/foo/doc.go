// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foo is foo-controller. It manages the Deployment that each Foo names and reports
// its state in the Foo's status.
//
// This package has the parts that are specific to Foo: how its spec is read, and how its
// status is compared and written. The controller itself is in
// [samplecontroller.io/sample-controller-manager/pkg/workload], which all kinds that manage
// a Deployment share.
package foo
