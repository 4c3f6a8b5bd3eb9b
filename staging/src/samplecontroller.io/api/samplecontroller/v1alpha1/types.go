// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Foo is an object that keeps one Deployment: its controller creates the
// Deployment named in spec.deploymentName, keeps what the spec declares, and
// says in the status what has become of it.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=foos,singular=foo,shortName=fo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only"
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="The Deployment that is kept"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Replicas wanted; empty where somebody else decides"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas that are available"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all is as declared"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is, or is not, ready"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods.summary`,description="What the Pods say: how many are ready, where they run and what is wrong"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The reason for a person"
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
	//
	// Its default tells an object that no controller has looked at yet (-1)
	// from one that is ready.
	// +optional
	// +default={"observedGeneration": -1}
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec is what is wanted of a Foo. What it does not declare belongs to others.
type FooSpec struct {
	// deploymentName is the name of the Deployment to keep, in the namespace of
	// the Foo. If a Deployment of this name exists and is not owned by the
	// Foo, it is not touched and the Foo is Stalled.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a valid Deployment name, for example \"example-foo\": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters"
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is how many Pods the Deployment shall have. Where it is absent,
	// the Deployment is created with one and its replicas are left to others,
	// for example to a HorizontalPodAutoscaler of the Deployment.
	//
	// A HorizontalPodAutoscaler of the Foo itself needs it to be set: without it the
	// scale subresource cannot be read. The maximum leaves room for a roll-out, which
	// may double the number of Pods, in 32 bits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the image of the Deployment's container "nginx". Where it is
	// absent, the Deployment is created with nginx:latest and its image is left
	// to others.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must be an image reference without white space, for example \"nginx:1.29\""
	Image string `json:"image,omitempty"`
}

// FooStatus is what is there, as last observed.
type FooStatus struct {
	// observedGeneration is the metadata.generation that the rest of the status
	// speaks of; -1 before the first observation.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// replicas is the number of replicas of the Deployment, of whatever version and state.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of replicas whose Pods are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// availableReplicas is the number of replicas that have been ready for the
	// Deployment's minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// selector is the selector of the Deployment's Pods, in the form that the scale subresource
	// and a HorizontalPodAutoscaler on the Foo read.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector"`
	// conditions follow the kstatus convention: Ready is always present; Reconciling
	// or Stalled only while it is True, with its reason and message.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// pods summarizes the object's Pods. status-aggregator-controller writes it. While
	// that controller is disabled, pods is absent or stale: compare
	// pods.observedGeneration with metadata.generation. While the object owns a
	// Deployment whose selector lacks the label "controller", pods is absent: Pods
	// without that label are not watched.
	// +optional
	Pods *workloadv1alpha1.PodSummary `json:"pods,omitempty"`
}

// FooList is a list of Foos.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}
