// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
)

var (
	created = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	placed  = created.Add(3 * time.Second)
)

// newPod returns a running and ready Pod of a ReplicaSet, modified by the given functions.
func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", UID: "uid-1", ResourceVersion: "7",
			Labels:            map[string]string{"app": "icecream", "controller": "web"},
			CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: "by-the-way", UID: "uid-other"},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid-rs", Controller: ptr.To(true)},
			},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(placed)},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "nginx",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// factsOf returns the facts about a Pod.
func factsOf(pod *corev1.Pod) Facts { return Facts{}.FactsOf(pod) }

// newRecord returns the record of a Pod.
func newRecord(pod *corev1.Pod) *Record { return controller.NewRecord[Facts](pod) }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// saying sets the reason and message of the Pod's status.
func saying(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, message }
}

func withContainers(containers ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.ContainerStatuses = containers }
}

func withInitContainers(containers ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.InitContainerStatuses = containers }
}

func withConditions(conditions ...corev1.PodCondition) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions = conditions }
}

func onNode(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = name }
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: placed} }

// unplaced makes the Pod unscheduled for the given reason.
func unplaced(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
				LastTransitionTime: metav1.NewTime(placed)},
		}}
	}
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "waiting",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func terminated(code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "ended",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
			Message: message}}}
}

func restarted(times int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{RestartCount: times}
}
