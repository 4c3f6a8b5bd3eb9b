// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PodSummary says what the Pods of an object say. A Pod belongs to the object
// if, and only if, controller owner references lead from it by UID to the
// object: Pod, ReplicaSet, Deployment, object.
type PodSummary struct {
	// Summary is all of this in one line for a person: how many Pods are ready,
	// the nodes with the most of them, and what is wrong.
	// +optional
	Summary string `json:"summary,omitempty"`

	// Total number of Pods, whatever their phase.
	// +optional
	Total int32 `json:"total"`
	// Pods whose phase is Pending: not yet placed, or their containers not yet started.
	// +optional
	Pending int32 `json:"pending"`
	// Pods whose phase is Running.
	// +optional
	Running int32 `json:"running"`
	// Pods whose condition Ready is True.
	// +optional
	Ready int32 `json:"ready"`
	// Pods whose phase is Succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Pods whose phase is Failed.
	// +optional
	Failed int32 `json:"failed"`
	// Pods whose phase is Unknown, or not reported.
	// +optional
	Unknown int32 `json:"unknown"`
	// Restarts of all containers of all Pods that exist now, added up.
	// +optional
	Restarts int64 `json:"restarts"`

	// Where the Pods run: at most 100 nodes, those with the most Pods first. It is
	// written as a whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeSummary `json:"nodes"`
	// How many further nodes with Pods are left out of nodes.
	// +optional
	NodesOmitted int32 `json:"nodesOmitted"`

	// The Pods that are worst off, the worst first: at most five. It is written as a
	// whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Problems []PodProblem `json:"problems"`
}

// NodeSummary counts the Pods of an object on one node.
type NodeSummary struct {
	// Name of the node.
	Name string `json:"name"`
	// Pods of the object on this node.
	// +optional
	Pods int32 `json:"pods"`
	// Those of them that are ready.
	// +optional
	Ready int32 `json:"ready"`
}

// PodProblem says what is wrong with one Pod.
type PodProblem struct {
	// Name of the Pod.
	Pod string `json:"pod"`
	// Reason in one word, as the kubelet or the scheduler gives it: for example
	// CrashLoopBackOff, ImagePullBackOff or Unschedulable.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for a person, cut to 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
