// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package v1alpha1 holds the Status that the statuses of Foo and Icecream embed, with
// the conditions of an object that manages a Deployment and the summary of its Pods.
// It registers no kind of its own.
package v1alpha1
