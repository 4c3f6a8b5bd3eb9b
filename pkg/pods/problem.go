// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

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
	// Reason is the reason that the kubelet or the scheduler reports, truncated to 64 characters.
	Reason string
	// Message is a human-readable description, truncated to 256 characters.
	Message string
}

// Severity is how bad a problem is.
type Severity uint8

// The severities, from the least to the worst.
const (
	// None: there is no problem.
	None Severity = iota
	// Failed: the Pod has failed. It is the least severe, because the Pod is replaced: only
	// its record is left.
	Failed
	// Unplaced: no node fits the Pod.
	Unplaced
	// Unknown: the node does not report the state of the Pod.
	Unknown
	// Waiting: a container cannot be started or keeps crashing.
	Waiting
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
				reason, message := waitReason(w)
				return newProblem(Waiting, reason, message)
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

// waitReason returns why a container waits. While an image cannot be pulled, the kubelet reports
// ImagePullBackOff between the attempts, and another reason after each of them. Both have the
// same cause, so both are reported alike: otherwise the status would change twice with each
// attempt. Kubelets before v1.32 report no cause between the attempts.
//
// Containers that were started also alternate, between CrashLoopBackOff and running. But each
// start changes the restart count, and with it the status.
func waitReason(w *corev1.ContainerStateWaiting) (reason, message string) {
	const backOff, prefix = "ImagePullBackOff", "Back-off pulling image "
	switch w.Reason {
	case "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed":
		return backOff, w.Reason + ": " + w.Message
	case backOff: // Back-off pulling image "nginx:1.29": ErrImagePull: not found
		if image, cause, ok := strings.Cut(w.Message, `": `); ok && strings.HasPrefix(image, prefix) {
			return backOff, cause
		}
	}
	return w.Reason, w.Message
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
	return Problem{Severity: severity, Reason: truncated(reason, maxReason), Message: truncated(message, maxMessage)}
}

// truncated returns s, truncated to most characters.
func truncated(s string, most int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-3]) + "..."
}
