// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Icecream is an object that keeps one Deployment: its controller creates the
// Deployment named in spec.deploymentName, keeps what the spec declares, and
// says in the status what has become of it.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=icecreams,singular=icecream,shortName=ice
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`,description="The Deployment that is kept"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Replicas wanted; empty where somebody else decides"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas that are available"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all is as declared"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is, or is not, ready"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods.summary`,description="What the Pods say: how many are ready, where they run and what is wrong"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The reason for a person"
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
	//
	// Its default tells an object that no controller has looked at yet (-1)
	// from one that is ready.
	// +optional
	// +default={"observedGeneration": -1}
	Status IcecreamStatus `json:"status,omitzero"`
}

// IcecreamSpec is what is wanted of an Icecream. What it does not declare belongs to others.
type IcecreamSpec struct {
	// deploymentName is the name of the Deployment to keep, in the namespace of
	// the Icecream. If a Deployment of this name exists and is not owned by the
	// Icecream, it is not touched and the Icecream is Stalled.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a valid Deployment name, for example \"example-icecream\": lower case letters, digits, '-' and '.', with a letter or digit first and last, at most 253 characters"
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is how many Pods the Deployment shall have. Where it is absent,
	// the Deployment is created with one and its replicas are left to others,
	// for example to a HorizontalPodAutoscaler of the Deployment.
	//
	// A HorizontalPodAutoscaler of the Icecream itself needs it to be set: without it the
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

// IcecreamStatus is what is there, as last observed.
type IcecreamStatus struct {
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
	// and a HorizontalPodAutoscaler on the Icecream read.
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
	// placements records the nodes that Pods were placed on: for each Pod that
	// exists, one record, ordered by time and Pod UID. A Pod stays recorded while it
	// is orphaned. The newest 500 are kept. It is written as a
	// whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Placements []Placement `json:"placements,omitempty"`
	// placementsOmitted is how many further Pods that exist are older than the
	// oldest record and left out of placements.
	// +optional
	PlacementsOmitted int32 `json:"placementsOmitted"`
}

// Placement records that a Pod was placed on a node.
type Placement struct {
	// podUID is the UID of the Pod: a Pod that is created again has a new one.
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
	// time is when the Pod was placed: the transition of its condition
	// PodScheduled to True.
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
