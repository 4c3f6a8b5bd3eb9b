// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is the last observed state of an object that manages one Deployment. The status
// of such a kind embeds it.
type Status struct {
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
	// object.
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
	Pods *PodSummary `json:"pods,omitempty"`
}
