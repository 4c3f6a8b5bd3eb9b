// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Icecream manages one Deployment. Its controller creates the Deployment named in
// spec.deploymentName, keeps the fields that the spec declares, and reports the
// Deployment's state in the status.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=icecreams,singular=icecream,shortName=ice
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="Name of the managed Deployment"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Desired replicas; empty if spec.replicas is not set"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Available replicas"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Deployment matches the spec and all replicas are available"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the Ready condition"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods.summary`,description="Summary of the Pods: how many are ready, on which nodes they run, and what is wrong"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="Message of the Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Icecream struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec IcecreamSpec `json:"spec,omitzero"`
	// status is the observed state. Users do not write it.
	// +optional
	// +default={}
	Status IcecreamStatus `json:"status,omitzero"`
}

// IcecreamSpec is the desired state of an Icecream. Fields that are not set are left to other
// writers of the Deployment.
type IcecreamSpec struct {
	// deploymentName is the name of the Deployment to manage, in the namespace of
	// the Icecream. If a Deployment with this name exists and is not owned by the
	// Icecream, it is not touched and the Icecream is Stalled. After a change of the name, a new
	// Deployment is created. The former one is not deleted: the status names it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a valid Deployment name, for example \"example-icecream\": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters"
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is the desired number of Pods. If it is not set, the Deployment is
	// created with 1 replica and its replicas are left to other writers, for example
	// to a HorizontalPodAutoscaler that targets the Deployment.
	//
	// Set it if a HorizontalPodAutoscaler targets the Icecream itself: without it, the
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

// IcecreamStatus is the last observed state of an Icecream.
type IcecreamStatus struct {
	workloadv1alpha1.Status `json:",inline"`

	// placements records the node of each Pod that is not finished, including those that
	// are being deleted: one record per Pod, ordered by time and Pod UID. The record of an
	// orphaned Pod is kept as long as the Pod exists. At most the newest 500 records are
	// kept. The list is written as a whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Placements []Placement `json:"placements,omitempty"`
	// placementsOmitted is the number of such Pods that are left out of placements
	// because they were placed before its oldest record.
	// +optional
	PlacementsOmitted int32 `json:"placementsOmitted"`
}

// Placement records which node a Pod was placed on.
type Placement struct {
	// podUID is the UID of the Pod. A re-created Pod has a new UID.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PodUID types.UID `json:"podUID,omitempty"`
	// pod is the name of the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// time is when the Pod was placed: the last transition of its PodScheduled
	// condition to True.
	// +optional
	Time metav1.Time `json:"time,omitzero"`
}

// IcecreamList is a list of Icecreams.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type IcecreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Icecream `json:"items"`
}
