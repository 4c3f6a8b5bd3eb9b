// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Foo manages one Deployment. Its controller creates the Deployment named in
// spec.deploymentName, keeps the fields that the spec declares, and reports the
// Deployment's state in the status.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=foos,singular=foo,shortName=fo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only"
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="Name of the managed Deployment"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Desired replicas; empty if spec.replicas is not set"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Available replicas"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Deployment matches the spec and all replicas are available"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods.summary`,description="Summary of the Pods: how many are ready, on which nodes they run, and what is wrong"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec FooSpec `json:"spec,omitzero"`
	// status is the observed state. Users do not write it.
	// +optional
	// +default={}
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec is the desired state of a Foo. Fields that are not set are left to other
// writers of the Deployment.
type FooSpec struct {
	// deploymentName is the name of the Deployment to manage, in the namespace of
	// the Foo. If a Deployment with this name exists and is not owned by the
	// Foo, it is not touched and the Foo is Stalled. After a change of the name, a new
	// Deployment is created. The former one is not deleted: the status names it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a valid Deployment name, for example \"example-foo\": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters"
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is the desired number of Pods. If it is not set, the Deployment is
	// created with 1 replica and its replicas are left to other writers, for example
	// to a HorizontalPodAutoscaler that targets the Deployment.
	//
	// Set it if a HorizontalPodAutoscaler targets the Foo itself: without it, the
	// scale subresource cannot be read. The maximum keeps the number of Pods within
	// 32 bits even while a rollout doubles it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the image of the Deployment's container "nginx". If it is not set,
	// the Deployment is created with nginx:latest and its image is left to other
	// writers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\x21-\\\\x7e]+$')",message="must be an image reference without white space or characters outside ASCII, for example \"nginx:1.29\""
	Image string `json:"image,omitempty"`
}

// FooStatus is the last observed state of a Foo.
type FooStatus struct {
	workloadv1alpha1.Status `json:",inline"`
}

// FooList is a list of Foos.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}
