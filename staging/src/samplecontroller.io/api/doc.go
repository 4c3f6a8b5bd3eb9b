// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api is the root of the API types that sample-controller-manager
// serves. It holds types, their deep copies and their registration with a
// scheme, and no client code: clients, informers and listers are in
// samplecontroller.io/client-go.
//
// The kinds are Foo, in [samplecontroller.io/api/samplecontroller/v1alpha1],
// and Icecream, in [samplecontroller.io/api/icecream/v1alpha1]. What their
// statuses have in common is in [samplecontroller.io/api/workload/v1alpha1].
package api
