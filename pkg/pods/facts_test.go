// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// content is everything that a record returns.
type content struct {
	Namespace, Name, ResourceVersion string
	UID                              types.UID
	Controller                       Controller
	Node                             string
	Placed                           time.Time
	Ready                            bool
	Phase                            corev1.PodPhase
	Restarts                         int32
	Problem                          Problem
}

func contentOf(r *Record) content {
	f := r.Facts()
	return content{
		r.GetNamespace(), r.GetName(), r.GetResourceVersion(), f.UID(), f.Controller(),
		f.Node(), f.Placed().UTC(), f.Ready(), f.Phase(), f.Restarts(), f.Problem(),
	}
}

func TestFactsOf(t *testing.T) {
	never := time.Unix(0, 0).UTC() // for a Pod without a node
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   func(*content) // differences from a running and ready Pod
	}{
		"runs":      {func(*corev1.Pod) {}, func(*content) {}},
		"pending":   {inPhase(corev1.PodPending), func(c *content) { c.Phase = corev1.PodPending }},
		"succeeded": {inPhase(corev1.PodSucceeded), func(c *content) { c.Phase = corev1.PodSucceeded }},
		"failed": {inPhase(corev1.PodFailed), func(c *content) {
			c.Phase, c.Problem = corev1.PodFailed,
				Problem{Failed, "Failed", ""}
		}},
		"in no phase":       {inPhase(""), func(c *content) { c.Phase = corev1.PodUnknown }},
		"in a future phase": {inPhase("Resting"), func(c *content) { c.Phase = corev1.PodUnknown }},
		"unknown": {inPhase(corev1.PodUnknown), func(c *content) {
			c.Phase, c.Problem = corev1.PodUnknown, Problem{Unknown, "Unknown", ""}
		}},
		"not ready": {
			withConditions(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse},
				corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}),
			func(c *content) { c.Ready, c.Placed = false, created },
		},
		"readiness unknown": {
			withConditions(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionUnknown}),
			func(c *content) { c.Ready, c.Placed = false, created },
		},
		"restarts of all containers": {
			func(pod *corev1.Pod) {
				withInitContainers(restarted(1), restarted(2))(pod)
				withContainers(restarted(4), restarted(8))(pod)
			},
			func(c *content) { c.Restarts = 15 },
		},
		"bound without the scheduler": {withConditions(), func(c *content) { c.Ready, c.Placed = false, created }},
		"not bound": {
			unplaced("Unschedulable", "no nodes"),
			func(c *content) {
				c.Node, c.Placed, c.Ready, c.Phase, c.Problem = "", never, false, corev1.PodPending, Problem{Unplaced, "Unschedulable", "no nodes"}
			},
		},
		"scheduled, but the binding not seen": {onNode(""), func(c *content) { c.Node, c.Placed = "", never }},
		"bound, with the old condition": {
			withConditions(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionUnknown,
				LastTransitionTime: metav1.NewTime(placed)}),
			func(c *content) { c.Ready, c.Placed = false, created },
		},
		"no owner": {func(pod *corev1.Pod) { pod.OwnerReferences = pod.OwnerReferences[:1] },
			func(c *content) { c.Controller = Controller{} }},
	} {
		t.Run(name, func(t *testing.T) {
			want := content{
				Namespace: "default", Name: "web-1", ResourceVersion: "7", UID: "uid-1",
				Controller: Controller{"web", "uid-rs"}, Node: "node-1", Placed: placed, Ready: true, Phase: corev1.PodRunning,
			}
			test.want(&want)
			pod := newPod(test.change)
			before := pod.DeepCopy()
			if diff := cmp.Diff(want, contentOf(newRecord(pod))); diff != "" {
				t.Errorf("unexpected record (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("the Pod was changed:\n%s", diff)
			}
		})
	}
}

// A binding may have a node name of any length, a status may not.
func TestNodeIsBounded(t *testing.T) {
	if got := factsOf(newPod(onNode(strings.Repeat("n", 300)))).Node(); len(got) != 253 {
		t.Errorf("node of %d characters, want 253", len(got))
	}
}

func TestSame(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*corev1.Pod)
		same, here bool
	}{
		"only the resourceVersion": {func(pod *corev1.Pod) { pod.ResourceVersion = "8" }, true, true},
		"a dropped field":          {func(pod *corev1.Pod) { pod.Labels = nil }, true, true},
		"ready":                    {withConditions(newPod().Status.Conditions[0]), false, true},
		"phase":                    {inPhase(corev1.PodPending), false, true},
		"succeeded":                {inPhase(corev1.PodSucceeded), false, false},
		"failed":                   {inPhase(corev1.PodFailed), false, false},
		"in deletion":              {deleted, false, true},
		"restarts":                 {withContainers(restarted(1)), false, true},
		"problem":                  {withContainers(waiting("CrashLoopBackOff", "")), false, true},
		"node":                     {onNode("node-2"), false, false},
		"time": {func(pod *corev1.Pod) {
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(created)
		}, false, false},
		"re-created":    {func(pod *corev1.Pod) { pod.UID = "uid-2" }, false, false},
		"another owner": {func(pod *corev1.Pod) { pod.OwnerReferences[1].UID = "uid-rs2" }, false, false},
		"no owner":      {func(pod *corev1.Pod) { pod.OwnerReferences = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := factsOf(newPod()), factsOf(newPod(test.change))
			if got := before == now; got != test.same {
				t.Errorf("the facts are the same: %v, want %v", got, test.same)
			}
			if got := before.SamePlace(now); got != test.here {
				t.Errorf("SamePlace() = %v, want %v", got, test.here)
			}
		})
	}
}

func TestActive(t *testing.T) {
	for name, test := range map[string]struct {
		phase                         corev1.PodPhase
		deleted                       bool
		active, terminating, finished bool
	}{
		"pending":                {phase: corev1.PodPending, active: true},
		"running":                {phase: corev1.PodRunning, active: true},
		"unknown":                {phase: corev1.PodUnknown, active: true},
		"no phase":               {active: true},
		"succeeded":              {phase: corev1.PodSucceeded, finished: true},
		"failed":                 {phase: corev1.PodFailed, finished: true},
		"running, in deletion":   {phase: corev1.PodRunning, deleted: true, terminating: true},
		"pending, in deletion":   {phase: corev1.PodPending, deleted: true, terminating: true},
		"succeeded, in deletion": {phase: corev1.PodSucceeded, deleted: true, finished: true},
		"failed, in deletion":    {phase: corev1.PodFailed, deleted: true, finished: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(inPhase(test.phase))
			if test.deleted {
				deleted(pod)
			}
			r := factsOf(pod)
			if r.Active() != test.active || r.Terminating() != test.terminating || r.Finished() != test.finished {
				t.Errorf("active %v, terminating %v, finished %v; want %v, %v, %v",
					r.Active(), r.Terminating(), r.Finished(), test.active, test.terminating, test.finished)
			}
		})
	}
}

// The next size class of the allocator is 144 bytes.
func TestRecordFitsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(Record{}); size != 128 {
		t.Errorf("a Record has %d bytes, want 128", size)
	}
}

func TestSameProblem(t *testing.T) {
	crashing := func(message string) Facts {
		return factsOf(newPod(withContainers(waiting("CrashLoopBackOff", message))))
	}
	before := crashing("back-off 10s")
	if before != crashing("back-off 10s") {
		t.Error("the facts about the same problem differ")
	}
	if before == crashing("back-off 20s") {
		t.Error("the facts about problems with different messages are the same")
	}
}

func TestFactsOfReplicaSet(t *testing.T) {
	owners := newPod().OwnerReferences
	stored := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "uid-1", OwnerReferences: owners}}
	if got, want := (replicaSetFacts{}).FactsOf(stored), (replicaSetFacts{pack("uid-1"), "web", pack("uid-rs")}); got != want {
		t.Errorf("FactsOf() = %v, want %v", got, want)
	}
	stored.OwnerReferences = owners[:1]
	if got, want := (replicaSetFacts{}).FactsOf(stored), (replicaSetFacts{uid: pack("uid-1")}); got != want {
		t.Errorf("FactsOf() without a controller = %v, want %v", got, want)
	}
}
