// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"math"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/controller"
)

// Record is what the cache holds for a Pod: its name, and the facts about it.
type Record = controller.Record[Facts]

// Facts are the facts about a Pod that controllers need. They are equal if controllers see no difference.
//
// Strings that many Pods share are stored once. Messages are not shared, because most contain the name of
// their Pod. A [Record] has 128 bytes, which is a size class of the allocator. The next one is 144.
type Facts struct {
	uid            packedUID
	controllerName string
	controllerUID  packedUID
	node           unique.Handle[string]
	reason         unique.Handle[string]
	message        string
	placed         int64 // seconds since 1970
	restarts       int32
	severity       Severity
	phase          phase
	ready          bool
	inDeletion     bool
}

// Controller is the owner in a controller owner reference: a ReplicaSet for the Pods of a Deployment. The
// zero value means none.
type Controller struct {
	// Name and UID are those of the owner reference.
	Name string
	UID  types.UID
}

// FactsOf implements controller.Facts.
func (Facts) FactsOf(pod *corev1.Pod) Facts {
	problem := problemOf(pod)
	f := Facts{
		uid:        pack(pod.UID),
		node:       unique.Make(truncated(pod.Spec.NodeName, maxNode)),
		reason:     unique.Make(problem.Reason),
		message:    problem.Message,
		restarts:   restartsOf(pod),
		severity:   problem.Severity,
		phase:      phaseOf(pod.Status.Phase),
		inDeletion: pod.DeletionTimestamp != nil,
	}
	f.controllerName, f.controllerUID = controllerOf(pod)
	if pod.Spec.NodeName != "" {
		// A Pod that is created with a node name bypasses the scheduler and has no such
		// condition.
		f.placed = pod.CreationTimestamp.Unix()
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; {
		case c.Type == corev1.PodReady:
			f.ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && pod.Spec.NodeName != "" &&
			!c.LastTransitionTime.IsZero():
			f.placed = c.LastTransitionTime.Unix()
		}
	}
	return f
}

// controllerOf returns the controller of an object. The name shares the memory of the object's name if that
// begins with it, as those of Pods and ReplicaSets do.
func controllerOf(object metav1.Object) (string, packedUID) {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return "", ""
	}
	name := owner.Name
	if strings.HasPrefix(object.GetName(), name) {
		name = object.GetName()[:len(name)]
	}
	return name, pack(owner.UID)
}

// UID returns the UID of the Pod.
func (f Facts) UID() types.UID { return f.uid.unpack() }

// Controller returns the owner in the Pod's controller owner reference.
func (f Facts) Controller() Controller {
	return Controller{f.controllerName, f.controllerUID.unpack()}
}

// Node returns the name of the Pod's node, "" if it is not placed yet.
func (f Facts) Node() string { return f.node.Value() }

// Placed returns when the Pod was placed on its node, with a resolution of one second. It is of no use
// while Node is "".
func (f Facts) Placed() time.Time { return time.Unix(f.placed, 0) }

// Ready reports whether the Pod is ready.
func (f Facts) Ready() bool { return f.ready }

// Phase returns the phase of the Pod, [corev1.PodUnknown] if it reports none.
func (f Facts) Phase() corev1.PodPhase { return phases[f.phase] }

// Finished reports whether the Pod has succeeded or failed. A finished Pod never runs again.
func (f Facts) Finished() bool {
	return f.Phase() == corev1.PodSucceeded || f.Phase() == corev1.PodFailed
}

// Terminating reports whether the Pod is being deleted and is not finished.
func (f Facts) Terminating() bool { return f.inDeletion && !f.Finished() }

// Active reports whether the Pod counts as a replica of its ReplicaSet: it is neither finished
// nor being deleted.
func (f Facts) Active() bool { return !f.inDeletion && !f.Finished() }

// Restarts returns the sum of the restart counts of the Pod's containers.
func (f Facts) Restarts() int32 { return f.restarts }

// Problem returns the problem of the Pod, the zero Problem if there is none.
func (f Facts) Problem() Problem {
	return Problem{Severity: f.severity, Reason: f.reason.Value(), Message: f.message}
}

// SamePlace reports whether two records have the same Pod, owner, node and time of
// placement, and whether both or neither of them is finished.
func (f Facts) SamePlace(other Facts) bool {
	return f.uid == other.uid && f.controllerUID == other.controllerUID &&
		f.node == other.node && f.placed == other.placed && f.Finished() == other.Finished()
}

// phase is an index into phases.
type phase uint8

// phases begins with the phase that stands for unknown ones.
var phases = [...]corev1.PodPhase{corev1.PodUnknown, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded,
	corev1.PodFailed}

func phaseOf(reported corev1.PodPhase) phase {
	for i, known := range phases {
		if reported == known {
			return phase(i)
		}
	}
	return 0
}

// restartsOf returns the sum of the reported restart counts, limited to int32. Negative
// counts are ignored.
func restartsOf(pod *corev1.Pod) int32 {
	var restarts int64
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			restarts += int64(max(containers[i].RestartCount, 0))
		}
	}
	return int32(min(restarts, math.MaxInt32))
}
