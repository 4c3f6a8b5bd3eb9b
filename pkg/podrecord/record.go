// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Record has the cached facts about a Pod. It is immutable.
//
// It implements as much of an object as an informer needs: its metadata are name,
// namespace, UID and resourceVersion.
type Record struct {
	facts
	resourceVersion uint64 // 0 if there is none
}

// facts has all of a record except the resourceVersion, so that records can be compared.
// Strings that many Pods share are stored once. Messages are not shared, because most
// contain the name of their Pod.
//
// A Record has 128 bytes, which is a size class of the allocator. The next one is 144.
type facts struct {
	name           string
	uid            packedUID
	controllerName string
	controllerUID  packedUID
	namespace      unique.Handle[string]
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

// Controller is the owner in a Pod's controller owner reference: a ReplicaSet for the Pods
// of a Deployment. The zero value means none.
type Controller struct {
	Name string
	UID  types.UID
}

// New returns the record of a Pod. It does not modify the Pod.
func New(pod *corev1.Pod) *Record {
	problem := problemOf(pod)
	r := &Record{facts: facts{
		name:       pod.Name,
		uid:        pack(pod.UID),
		namespace:  unique.Make(pod.Namespace),
		node:       unique.Make(cut(pod.Spec.NodeName, maxNode)),
		reason:     unique.Make(problem.Reason),
		message:    problem.Message,
		restarts:   restartsOf(pod),
		severity:   problem.Severity,
		phase:      phaseOf(pod.Status.Phase),
		inDeletion: pod.DeletionTimestamp != nil,
	}}
	// API servers use numbers, never 0: see [resourceversion.CompareResourceVersion].
	r.resourceVersion, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		r.controllerName, r.controllerUID = owner.Name, pack(owner.UID)
		if strings.HasPrefix(pod.Name, owner.Name) { // ReplicaSets name their Pods so; this shares the string
			r.controllerName = pod.Name[:len(owner.Name)]
		}
	}
	if pod.Spec.NodeName != "" {
		// A Pod that is created with a node name bypasses the scheduler and has no such
		// condition.
		r.placed = pod.CreationTimestamp.Unix()
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; {
		case c.Type == corev1.PodReady:
			r.ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && pod.Spec.NodeName != "" && !c.LastTransitionTime.IsZero():
			r.placed = c.LastTransitionTime.Unix()
		}
	}
	return r
}

// Transform is the transform of an informer of Pods. It turns Pods into records and passes
// everything else through, including records.
func Transform(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return New(pod), nil
	}
	return obj, nil
}

// GetName returns the name of the Pod.
func (r *Record) GetName() string { return r.name }

// GetNamespace returns the namespace of the Pod.
func (r *Record) GetNamespace() string { return r.namespace.Value() }

// GetResourceVersion returns the resourceVersion of the Pod that the record was made from.
func (r *Record) GetResourceVersion() string {
	if r.resourceVersion == 0 {
		return ""
	}
	return strconv.FormatUint(r.resourceVersion, 10)
}

// UID returns the UID of the Pod.
func (r *Record) UID() types.UID { return r.uid.unpack() }

// Controller returns the owner in the Pod's controller owner reference.
func (r *Record) Controller() Controller {
	return Controller{r.controllerName, r.controllerUID.unpack()}
}

// Node returns the name of the Pod's node, "" if it is not placed yet.
func (r *Record) Node() string { return r.node.Value() }

// Placed returns when the Pod was placed on its node, with a resolution of one second.
func (r *Record) Placed() time.Time { return time.Unix(r.placed, 0) }

// Ready reports whether the Pod is ready.
func (r *Record) Ready() bool { return r.ready }

// Phase returns the phase of the Pod, [corev1.PodUnknown] if it reports none.
func (r *Record) Phase() corev1.PodPhase { return phases[r.phase] }

// Finished reports whether the Pod has succeeded or failed. A finished Pod never runs again.
func (r *Record) Finished() bool {
	return r.Phase() == corev1.PodSucceeded || r.Phase() == corev1.PodFailed
}

// Terminating reports whether the Pod is being deleted and is not finished.
func (r *Record) Terminating() bool { return r.inDeletion && !r.Finished() }

// Active reports whether the Pod counts as a replica of its ReplicaSet: it is neither finished
// nor being deleted.
func (r *Record) Active() bool { return !r.inDeletion && !r.Finished() }

// Restarts returns the sum of the restart counts of the Pod's containers.
func (r *Record) Restarts() int32 { return r.restarts }

// Problem returns the problem of the Pod, the zero Problem if there is none.
func (r *Record) Problem() Problem {
	return Problem{Severity: r.severity, Reason: r.reason.Value(), Message: r.message}
}

// Same reports whether two records have the same facts.
func (r *Record) Same(other *Record) bool {
	return r.facts == other.facts
}

// SamePlace reports whether two records have the same Pod, owner, node and time of
// placement, and whether both or neither of them is finished.
func (r *Record) SamePlace(other *Record) bool {
	return r.uid == other.uid && r.controllerUID == other.controllerUID &&
		r.node == other.node && r.placed == other.placed && r.Finished() == other.Finished()
}

// GetObjectMeta returns a copy of the cached metadata.
func (r *Record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: r.name, Namespace: r.namespace.Value(), UID: r.UID(), ResourceVersion: r.GetResourceVersion()}
}

// GetObjectKind returns the kind Pod.
func (r *Record) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
}

// DeepCopyObject returns a copy of the record.
func (r *Record) DeepCopyObject() runtime.Object {
	c := *r
	return &c
}

// phase is an index into phases.
type phase uint8

// phases begins with the phase that stands for unknown ones.
var phases = [...]corev1.PodPhase{corev1.PodUnknown, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}

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
