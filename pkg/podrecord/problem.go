// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// Problem is what is wrong with a Pod.
type Problem struct {
	// Severity orders problems: the highest is the worst, [None] is no problem.
	Severity Severity
	// Reason in one word, as the kubelet or the scheduler gives it.
	Reason string
	// Message for a person, cut to what a status may hold.
	Message string
}

// Severity says how bad a problem is.
type Severity uint8

// The severities, from the least to the worst.
const (
	// None: there is no problem.
	None Severity = iota
	// Unplaced: no node takes the Pod.
	Unplaced
	// Unknown: the node does not say what became of the Pod.
	Unknown
	// Waiting: a container cannot be started, or not be kept running.
	Waiting
	// Failed: the Pod has ended in failure.
	Failed
)

// What a status holds at most, by its schema. A binding may name a node at any length.
const (
	maxNode    = 253
	maxReason  = 64
	maxMessage = 256
)

// problemOf returns what is wrong with the Pod. That a container is being created
// or is not yet ready is not wrong, and one that is being deleted has no problem
// that would last.
func problemOf(pod *corev1.Pod) Problem {
	if pod.DeletionTimestamp != nil {
		return Problem{}
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		reason, message := failure(pod)
		return newProblem(Failed, reason, message)
	case corev1.PodSucceeded:
		return Problem{}
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			if w := containers[i].State.Waiting; w != nil && !isStarting(w.Reason) {
				return newProblem(Waiting, w.Reason, w.Message)
			}
		}
	}
	if pod.Status.Phase == corev1.PodUnknown {
		return newProblem(Unknown, cmp.Or(pod.Status.Reason, "Unknown"), pod.Status.Message)
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return newProblem(Unplaced, cmp.Or(c.Reason, "Unschedulable"), c.Message)
		}
	}
	return Problem{}
}

// isStarting tells whether a container waits for nothing but its turn.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// failure returns why the Pod has failed: what it says of itself, else what its
// first container does that has failed.
func failure(pod *corev1.Pod) (reason, message string) {
	reason, message = pod.Status.Reason, pod.Status.Message
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			t := containers[i].State.Terminated
			if reason != "" || t == nil || t.ExitCode == 0 {
				continue
			}
			reason = cmp.Or(t.Reason, "Error")
			message = cmp.Or(t.Message, fmt.Sprintf("container %q exited with code %d", containers[i].Name, t.ExitCode))
		}
	}
	return cmp.Or(reason, "Failed"), message
}

func newProblem(severity Severity, reason, message string) Problem {
	return Problem{Severity: severity, Reason: cut(reason, maxReason), Message: cut(message, maxMessage)}
}

// cut returns as much of s as has at most so many characters.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-3]) + "..."
}
