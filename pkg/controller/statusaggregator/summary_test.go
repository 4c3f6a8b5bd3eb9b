// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// record returns the record of a Pod with a phase and a node, modified by the given
// functions.
func record(name, node string, phase corev1.PodPhase, changes ...func(*corev1.Pod)) *pods.Record {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: phase}}
	for _, change := range changes {
		change(pod)
	}
	return controller.NewRecord[pods.Facts](pod)
}

func ready(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

func restarted(times int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: times})
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		})
	}
}

func unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no nodes"})
}

func evicted(pod *corev1.Pod) {
	pod.Status.Reason, pod.Status.Message = "Evicted", "low on memory"
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }

// Failed Pods of any number and of several reasons come after a Pod that can be helped.
func TestFailedPodsDoNotHideProblem(t *testing.T) {
	records := []*pods.Record{record("live", "node-1", corev1.PodRunning, waiting("CrashLoopBackOff", "back-off"))}
	for _, reason := range []string{"Evicted", "NodeShutdown", "UnexpectedAdmissionError"} {
		for i := range 5 {
			records = append(records, record(fmt.Sprintf("dead-%d-%s", i, reason), "node-2", corev1.PodFailed,
				func(pod *corev1.Pod) { pod.Status.Reason = reason }))
		}
	}
	s := summarize(records)
	if s.Problems[0].Pod != "live" || len(s.Problems) != maxProblems {
		t.Errorf("problems = %+v, want five, first that of the Pod that is not finished", s.Problems)
	}
	if want := "0/1 ready on node-1; 1 CrashLoopBackOff, 5 Evicted, 5 NodeShutdown"; s.Summary != want {
		t.Errorf("summary %q, want %q", s.Summary, want)
	}
}

// The kubelet reports two reasons in turn.
func TestPullAttemptsChangeNothing(t *testing.T) {
	after := summarize([]*pods.Record{record("a", "n", corev1.PodPending, waiting("ErrImagePull", "not found"))})
	between := summarize([]*pods.Record{record("a", "n", corev1.PodPending, waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: not found`))})
	if !same(&after, &between) {
		t.Errorf("summaries after and between two attempts differ:\n%+v\n%+v", after, between)
	}
}

func TestSummarize(t *testing.T) {
	for name, test := range map[string]struct {
		pods []*pods.Record
		want workloadv1alpha1.PodSummary
	}{
		"no Pods": {nil, workloadv1alpha1.PodSummary{Summary: "none"}},
		"one": {
			[]*pods.Record{record("a", "node-1", corev1.PodRunning, ready)},
			workloadv1alpha1.PodSummary{
				Summary: "1/1 ready on node-1", Total: 1, Running: 1, Ready: 1,
				Nodes: []workloadv1alpha1.NodeSummary{{Name: "node-1", Pods: 1, Ready: 1}},
			},
		},
		"all phases": {
			[]*pods.Record{
				record("pending-1", "", corev1.PodPending), record("pending-2", "n", corev1.PodPending),
				record("running-1", "n", corev1.PodRunning), record("running-2", "n", corev1.PodRunning, ready), record("running-3", "n", corev1.PodRunning),
				record("succeeded", "n", corev1.PodSucceeded),
				record("unknown", "n", corev1.PodUnknown), record("no phase", "n", ""),
				record("failed-1", "n", corev1.PodFailed), record("failed-2", "n", corev1.PodFailed), record("failed-3", "n", corev1.PodFailed),
				record("failed-4", "n", corev1.PodFailed),
			},
			workloadv1alpha1.PodSummary{
				Summary: "1/7 ready on n (6); 1 Unknown, 4 Failed", Total: 7, Pending: 2, Running: 3, Ready: 1, Succeeded: 1, Unknown: 2, Failed: 4,
				Nodes: []workloadv1alpha1.NodeSummary{{Name: "n", Pods: 6, Ready: 1}},
				Problems: []workloadv1alpha1.PodProblem{
					{Pod: "unknown", Reason: "Unknown"},
					{Pod: "failed-1", Reason: "Failed"}, {Pod: "failed-2", Reason: "Failed"}, {Pod: "failed-3", Reason: "Failed"}, {Pod: "failed-4", Reason: "Failed"},
				},
			},
		},
		"evicted Pods on a node without others": {
			[]*pods.Record{
				record("a", "node-1", corev1.PodRunning, ready), record("b", "node-2", corev1.PodFailed, evicted, ready, restarted(2)),
				record("c", "node-2", corev1.PodFailed, evicted, restarted(1)),
			},
			workloadv1alpha1.PodSummary{
				Summary: "1/1 ready on node-1; 2 Evicted", Total: 1, Running: 1, Ready: 1, Failed: 2, Restarts: 3,
				Nodes:    []workloadv1alpha1.NodeSummary{{Name: "node-1", Pods: 1, Ready: 1}},
				Problems: []workloadv1alpha1.PodProblem{{Pod: "b", Reason: "Evicted", Message: "low on memory"}, {Pod: "c", Reason: "Evicted", Message: "low on memory"}},
			},
		},
		"only finished Pods": {
			[]*pods.Record{record("a", "n", corev1.PodFailed, evicted), record("b", "n", corev1.PodSucceeded)},
			workloadv1alpha1.PodSummary{
				Summary: "none; 1 Evicted", Succeeded: 1, Failed: 1,
				Problems: []workloadv1alpha1.PodProblem{{Pod: "a", Reason: "Evicted", Message: "low on memory"}},
			},
		},
		"terminating": {
			[]*pods.Record{
				record("a", "node-1", corev1.PodRunning, ready), record("b", "node-2", corev1.PodRunning, ready, deleted, restarted(4)),
				record("c", "", corev1.PodPending, unschedulable), record("d", "", corev1.PodPending, unschedulable, deleted),
			},
			workloadv1alpha1.PodSummary{
				Summary: "1/2 ready on node-1; 1 Unschedulable; 2 terminating", Total: 2, Pending: 1, Running: 1, Ready: 1, Terminating: 2, Restarts: 4,
				Nodes:    []workloadv1alpha1.NodeSummary{{Name: "node-1", Pods: 1, Ready: 1}},
				Problems: []workloadv1alpha1.PodProblem{{Pod: "c", Reason: "Unschedulable", Message: "no nodes"}},
			},
		},
		"only terminating Pods": {
			[]*pods.Record{record("a", "n", corev1.PodRunning, ready, deleted)},
			workloadv1alpha1.PodSummary{Summary: "none; 1 terminating", Terminating: 1},
		},
		"finished, in deletion": {
			[]*pods.Record{record("a", "n", corev1.PodFailed, evicted, deleted), record("b", "n", corev1.PodSucceeded, deleted)},
			workloadv1alpha1.PodSummary{Summary: "none", Succeeded: 1, Failed: 1},
		},
		"nodes ordered by Pods, then name": {
			[]*pods.Record{
				record("a", "node-3", corev1.PodRunning, ready), record("b", "node-2", corev1.PodRunning, ready),
				record("c", "node-1", corev1.PodRunning),
				record("d", "node-2", corev1.PodRunning), record("e", "", corev1.PodPending),
			},
			workloadv1alpha1.PodSummary{
				Summary: "2/5 ready on node-2 (2), node-1, node-3", Total: 5, Pending: 1, Running: 4, Ready: 2,
				Nodes: []workloadv1alpha1.NodeSummary{{Name: "node-2", Pods: 2, Ready: 1}, {Name: "node-1", Pods: 1},
					{Name: "node-3", Pods: 1, Ready: 1}},
			},
		},
		"restarts": {
			[]*pods.Record{record("a", "", corev1.PodRunning, restarted(2_000_000_000)),
				record("b", "", corev1.PodRunning, restarted(2_000_000_000))},
			workloadv1alpha1.PodSummary{Summary: "0/2 ready", Total: 2, Running: 2, Restarts: 4_000_000_000},
		},
		"problems ordered by severity, then name": {
			[]*pods.Record{
				record("f", "", corev1.PodPending, unschedulable), record("d", "", corev1.PodUnknown),
				record("b", "", corev1.PodRunning, waiting("CrashLoopBackOff", "back-off")),
				record("c", "", corev1.PodRunning, waiting("ImagePullBackOff", "")), record("e", "", corev1.PodFailed),
				record("a", "", corev1.PodPending, unschedulable),
			},
			workloadv1alpha1.PodSummary{
				Summary: "0/5 ready; 1 CrashLoopBackOff, 1 ImagePullBackOff, 1 Unknown", Total: 5, Pending: 2, Running: 2, Unknown: 1, Failed: 1,
				Problems: []workloadv1alpha1.PodProblem{
					{Pod: "b", Reason: "CrashLoopBackOff", Message: "back-off"}, {Pod: "c", Reason: "ImagePullBackOff"},
					{Pod: "d", Reason: "Unknown"}, {Pod: "a", Reason: "Unschedulable", Message: "no nodes"}, {Pod: "f", Reason: "Unschedulable", Message: "no nodes"},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Caches are unordered.
			for range 10 {
				rand.Shuffle(len(test.pods), func(i, j int) { test.pods[i], test.pods[j] = test.pods[j], test.pods[i] })
				before := slices.Clone(test.pods)
				if diff := cmp.Diff(test.want, summarize(test.pods), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("unexpected summary (-want +got):\n%s", diff)
				}
				if s := summarize(test.pods); s.Nodes == nil || s.Problems == nil {
					t.Fatalf("a nil list would not be applied: %+v", s)
				}
				if !slices.Equal(before, test.pods) {
					t.Fatal("the Pods were reordered")
				}
			}
		})
	}
}

func TestSummaryIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		nodes, problems          int
		wantNodes                int
		wantOmitted, wantProblem int
		wantSummary              string
	}{
		"at the limits":    {100, 5, 100, 0, 5, "0/100 ready on node-000, node-001, node-002 and 97 more; 5 CrashLoopBackOff"},
		"above the limits": {103, 6, 100, 3, 5, "0/103 ready on node-000, node-001, node-002 and 100 more; 6 CrashLoopBackOff"},
		"four nodes":       {4, 0, 4, 0, 0, "0/4 ready on node-000, node-001, node-002 and 1 more"},
		"three nodes":      {3, 1, 3, 0, 1, "0/3 ready on node-000, node-001, node-002; 1 CrashLoopBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			var records []*pods.Record
			for i := range test.nodes {
				var changes []func(*corev1.Pod)
				if i < test.problems {
					changes = append(changes, waiting("CrashLoopBackOff", ""))
				}
				records = append(records, record(fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%03d", i), corev1.PodRunning, changes...))
			}
			s := summarize(records)
			if len(s.Nodes) != test.wantNodes || s.Nodes[len(s.Nodes)-1].Name != fmt.Sprintf("node-%03d", test.wantNodes-1) {
				t.Errorf("%d nodes up to %s, want %d in order", len(s.Nodes), s.Nodes[len(s.Nodes)-1].Name, test.wantNodes)
			}
			if int(s.NodesOmitted) != test.wantOmitted || len(s.Problems) != test.wantProblem {
				t.Errorf("%d nodes omitted and %d problems, want %d and %d", s.NodesOmitted, len(s.Problems), test.wantOmitted, test.wantProblem)
			}
			if s.Summary != test.wantSummary {
				t.Errorf("summary %q, want %q", s.Summary, test.wantSummary)
			}
		})
	}
}

// A field that is not compared would not be written if it alone changes.
func TestEachFieldOfSummaryIsCompared(t *testing.T) {
	if a, b := (workloadv1alpha1.PodSummary{}),
		(workloadv1alpha1.PodSummary{Nodes: []workloadv1alpha1.NodeSummary{}}); !same(&a, &b) {
		t.Error("nil and empty nodes are not equal")
	}
	if one := (workloadv1alpha1.PodSummary{}); same(nil, &one) || same(&one, nil) || !same(nil, nil) {
		t.Error("a nil summary equals an empty one")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[workloadv1alpha1.PodSummary]()) {
		var a, b workloadv1alpha1.PodSummary
		value := reflect.ValueOf(&a).Elem().FieldByIndex(field.Index)
		switch field.Type.Kind() {
		case reflect.String:
			value.SetString("x")
		case reflect.Int32, reflect.Int64:
			value.SetInt(1)
		case reflect.Slice:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		default:
			t.Errorf("no value for field %s of type %v", field.Name, field.Type)
		}
		if same(&a, &b) {
			t.Errorf("summaries that differ in %s are equal", field.Name)
		}
	}
}
