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
	// most Pods, what is wrong, and how many Pods are being deleted.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Summary string `json:"summary"`

	// total is the number of active Pods: those that are neither finished nor being
	// deleted. The Deployment counts the same Pods as its replicas.
	// +optional
	Total int32 `json:"total"`
	// pending is the number of active Pods whose phase is Pending: not yet scheduled, or
	// with containers that have not started yet.
	// +optional
	Pending int32 `json:"pending"`
	// running is the number of active Pods whose phase is Running.
	// +optional
	Running int32 `json:"running"`
	// ready is the number of active Pods whose condition Ready is True.
	// +optional
	Ready int32 `json:"ready"`
	// succeeded is the number of Pods that finished in phase Succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of Pods that finished in phase Failed, such as evicted ones.
	// +optional
	Failed int32 `json:"failed"`
	// unknown is the number of active Pods whose phase is Unknown or not reported.
	// +optional
	Unknown int32 `json:"unknown"`
	// terminating is the number of Pods that are being deleted and are not finished.
	// +optional
	Terminating int32 `json:"terminating"`
	// restarts is the sum of the restart counts of all containers of all existing Pods,
	// including finished ones and those that are being deleted.
	// +optional
	Restarts int64 `json:"restarts"`

	// nodes lists at most 100 nodes that active Pods are on, those with the most of them
	// first. The list is atomic, so that entries added by other writers are removed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Nodes []NodeSummary `json:"nodes"`
	// nodesOmitted is the number of nodes with active Pods that are left out of nodes.
	// +optional
	NodesOmitted int32 `json:"nodesOmitted"`

	// problems lists at most 5 Pods with the most severe problems, the most severe
	// first. Failed Pods come last, because they are replaced. A Pod that is being deleted
	// is not a problem. The list is atomic, so that entries added by other writers are removed.
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
	// pods is the number of the object's active Pods on this node.
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
	// CrashLoopBackOff or Unschedulable. It is ImagePullBackOff also right after a failed
	// pull, when the kubelet reports ErrImagePull.
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
