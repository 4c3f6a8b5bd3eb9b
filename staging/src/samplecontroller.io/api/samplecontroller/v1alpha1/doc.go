// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=samplecontroller.k8s.io

// Package v1alpha1 is version v1alpha1 of the API group samplecontroller.k8s.io. It has the
// kind Foo.
package v1alpha1
