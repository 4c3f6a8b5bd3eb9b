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

// Problem is the problem of a Pod.
type Problem struct {
	// Severity orders problems: the highest is the worst. [None] means no problem.
	Severity Severity
	// Reason is the reason that the kubelet or the scheduler reports.
	Reason string
	// Message is a human-readable description, cut to the limit of the status.
	Message string
}

// Severity is how bad a problem is.
type Severity uint8

// The severities, from the least to the worst.
const (
	// None: there is no problem.
	None Severity = iota
	// Unplaced: no node fits the Pod.
	Unplaced
	// Unknown: the node does not report the state of the Pod.
	Unknown
	// Waiting: a container cannot be started or keeps crashing.
	Waiting
	// Failed: the Pod has failed.
	Failed
)

// Limits in the schema of the status. The node name in a binding may have any length.
const (
	maxNode    = 253
	maxReason  = 64
	maxMessage = 256
)

// problemOf returns the problem of the Pod. A container that is being created or is not yet
// ready is not a problem. A Pod that is being deleted has none, since it would not last.
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

// isStarting reports whether a waiting container is just starting.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// failure returns why the Pod has failed: the reason of the Pod, else that of its first
// failed container.
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

// cut returns s cut to most characters.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-3]) + "..."
}
