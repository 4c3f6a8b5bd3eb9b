// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api is the root of the API types of sample-controller-manager. It holds
// the types, their deep copies and their registration with a scheme. Clients,
// informers and listers are in samplecontroller.io/client-go.
//
// The kinds are Foo, in [samplecontroller.io/api/samplecontroller/v1alpha1],
// and Icecream, in [samplecontroller.io/api/icecream/v1alpha1]. The parts of the
// status that both share are in [samplecontroller.io/api/workload/v1alpha1].
package api
