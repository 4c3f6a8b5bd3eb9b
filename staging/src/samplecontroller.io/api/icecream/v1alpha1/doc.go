// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=controller.nicoleh.io
// +groupGoName=Icecream

// Package v1alpha1 is version v1alpha1 of the API group controller.nicoleh.io. It has the
// kind Icecream.
package v1alpha1
