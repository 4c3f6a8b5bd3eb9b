// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PodSummary summarizes the Pods of an object. A Pod belongs to the object
// if, and only if, controller owner references lead from it by UID to the
// object: Pod, ReplicaSet, Deployment, object.
type PodSummary struct {
	// observedGeneration is the metadata.generation that the object had when its
	// Pods were last summarized. While it is lower than metadata.generation, the
	// summary is from before the last change of the spec: status-aggregator-controller
	// has not yet looked at the Pods since, or is disabled.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// summary is all of this in one line for a person: how many Pods are ready,
	// the nodes with the most of them, and what is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Summary string `json:"summary"`

	// total is the number of Pods, whatever their phase.
	// +optional
	Total int32 `json:"total"`
	// pending is the number of Pods whose phase is Pending: not yet placed, or their
	// containers not yet started.
	// +optional
	Pending int32 `json:"pending"`
	// running is the number of Pods whose phase is Running.
	// +optional
	Running int32 `json:"running"`
	// ready is the number of Pods whose condition Ready is True.
	// +optional
	Ready int32 `json:"ready"`
	// succeeded is the number of Pods whose phase is Succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of Pods whose phase is Failed.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of Pods whose phase is Unknown, or not reported.
	// +optional
	Unknown int32 `json:"unknown"`
	// restarts is the sum of the restarts of all containers of all Pods that exist now.
	// +optional
	Restarts int64 `json:"restarts"`

	// nodes is where the Pods run: at most 100 nodes, those with the most Pods first.
	// It is written as a whole: an apply would not remove nodes that others have added.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeSummary `json:"nodes"`
	// nodesOmitted is how many further nodes with Pods are left out of nodes.
	// +optional
	NodesOmitted int32 `json:"nodesOmitted"`

	// problems are the Pods that are worst off, the worst first: at most five. It is
	// written as a whole: an apply would not remove Pods that others have added.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Problems []PodProblem `json:"problems"`
}

// NodeSummary counts the Pods of an object on one node.
type NodeSummary struct {
	// name is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// pods is the number of Pods of the object on this node.
	// +optional
	Pods int32 `json:"pods"`
	// ready is how many of them are ready.
	// +optional
	Ready int32 `json:"ready"`
}

// PodProblem says what is wrong with one Pod.
type PodProblem struct {
	// pod is the name of the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// reason is what is wrong in one word, as the kubelet or the scheduler gives it: for example
	// CrashLoopBackOff, ImagePullBackOff or Unschedulable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message is for a person, cut to 256 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
