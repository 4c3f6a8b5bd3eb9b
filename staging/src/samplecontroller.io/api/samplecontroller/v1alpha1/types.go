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
	// observedGeneration is the metadata.generation that the rest of the status
	// describes. The default of -1 marks an object that no controller has observed yet.
	// +optional
	// +default=-1
	ObservedGeneration int64 `json:"observedGeneration"`
	// replicas is the total number of replicas of the Deployment, in any version and
	// state.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of replicas that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// availableReplicas is the number of replicas that have been ready for the
	// Deployment's minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// selector is the label selector of the Deployment's Pods, as a string. The scale
	// subresource reads it, and through it a HorizontalPodAutoscaler that targets the
	// Foo.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector"`
	// unavailableSince is since when fewer replicas than wanted are available although
	// the rollout is complete, or since when the Deployment's ReplicaSet cannot be
	// created. It begins again when the number of available replicas rises, and when the
	// spec or the wanted replicas change. After the Deployment's
	// spec.progressDeadlineSeconds the object is Stalled.
	// +optional
	UnavailableSince *metav1.Time `json:"unavailableSince,omitempty"`
	// conditions follow the kstatus convention. Ready is always present. Reconciling
	// or Stalled is present only while it is True; Ready then has the same reason and
	// message.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// pods summarizes the object's Pods. status-aggregator-controller writes it. While
	// that controller is disabled, pods is absent or stale: compare
	// pods.observedGeneration with metadata.generation. pods is also absent while the
	// object owns a Deployment whose selector lacks the label "controller", because
	// Pods without that label are not watched.
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
