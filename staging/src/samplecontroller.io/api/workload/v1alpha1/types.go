// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PodSummary summarizes the Pods of an object. A Pod belongs to the object if and only
// if controller owner references lead from the Pod to the object by UID: Pod,
// ReplicaSet, Deployment, object.
type PodSummary struct {
	// observedGeneration is the object's metadata.generation at the time of this
	// summary. If it is lower than metadata.generation, the summary predates the last
	// change of the spec: status-aggregator-controller has not run since, or is
	// disabled.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// summary is a human-readable line: how many Pods are ready, the nodes with the
	// most Pods, and what is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Summary string `json:"summary"`

	// total is the number of Pods in any phase.
	// +optional
	Total int32 `json:"total"`
	// pending is the number of Pods whose phase is Pending: not yet scheduled, or with
	// containers that have not started yet.
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
	// unknown is the number of Pods whose phase is Unknown or not reported.
	// +optional
	Unknown int32 `json:"unknown"`
	// restarts is the sum of the restart counts of all containers of all existing Pods.
	// +optional
	Restarts int64 `json:"restarts"`

	// nodes lists at most 100 nodes that the Pods run on, those with the most Pods
	// first. The list is atomic, so that entries added by other writers are removed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeSummary `json:"nodes"`
	// nodesOmitted is the number of nodes with Pods that are left out of nodes.
	// +optional
	NodesOmitted int32 `json:"nodesOmitted"`

	// problems lists at most 5 Pods with the most severe problems, the most severe
	// first. The list is atomic, so that entries added by other writers are removed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Problems []PodProblem `json:"problems"`
}

// NodeSummary counts the Pods of one object on one node.
type NodeSummary struct {
	// name is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// pods is the number of the object's Pods on this node.
	// +optional
	Pods int32 `json:"pods"`
	// ready is the number of those Pods that are ready.
	// +optional
	Ready int32 `json:"ready"`
}

// PodProblem describes the problem of one Pod.
type PodProblem struct {
	// pod is the name of the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// reason is the reason that the kubelet or the scheduler reports, for example
	// CrashLoopBackOff, ImagePullBackOff or Unschedulable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message is a human-readable description, cut to 256 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
