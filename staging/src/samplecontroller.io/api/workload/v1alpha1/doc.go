// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package v1alpha1 holds what the statuses of Foo and Icecream have in common:
// the conditions of an object that keeps a Deployment, and what its Pods say.
// It registers no kind of its own.
package v1alpha1
