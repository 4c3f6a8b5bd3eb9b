// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// place puts a Pod on a node, with a problem or without one if it is empty.
func (b *bubble) place(name, node, problem string) *pods.Record {
	b.Helper()
	managertest.Update(b.Env, "default", name, func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.ContainerStatuses = node, nil
		if problem != "" {
			waiting(problem, "")(pod)
		}
	})
	pod, _ := managertest.Get[*corev1.Pod](b.Env, "default", name)
	return record(name, node, pod.Status.Phase, func(p *corev1.Pod) { p.Status = pod.Status })
}

// TestListsFollowPods changes the order and the length of both lists of the summary. A patch that mixes up their
// elements costs another write, or is written again forever.
func TestListsFollowPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		const count = 8
		for i := range count {
			b.pod(fmt.Sprint("p-", i), true)
		}
		for round := range 6 {
			var records []*pods.Record
			for i := range count {
				node := fmt.Sprint("node-", (i*(round+1)+i*i*round)%5)
				records = append(records, b.place(fmt.Sprint("p-", i), node, []string{"", "CrashLoopBackOff", "ImagePullBackOff"}[(i*3+round*5+i/3)%3]))
			}
			after(2 * time.Second)
			want := summarize(records)
			want.ObservedGeneration = 1
			if diff := cmp.Diff(&want, statusOf(b.object()).Pods); diff != "" {
				b.Errorf("round %d (-want +got):\n%s", round, diff)
			}
			if writes := b.Writes(); len(writes) > 2 && round > 0 {
				b.Errorf("round %d: %d writes, want one at once and one after the interval", round, len(writes))
			}
		}
		b.Writes()
		b.change(touch)
		after(time.Minute)
		b.wantWrites("")
	})
}

// TestForeignSummaryIsCorrected edits the summary as another client.
func TestForeignSummaryIsCorrected(t *testing.T) {
	type summary = workloadv1alpha1.PodSummary
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.pod("b", true)
		b.place("b", "node-2", "")
		after(2 * time.Second)
		want := statusOf(b.object()).Pods
		for what, edit := range map[string]func(*summary) *summary{
			"counts":     func(s *summary) *summary { s.Total, s.Summary = 99, "all is well"; return s },
			"no summary": func(*summary) *summary { return nil },
			"a problem": func(s *summary) *summary {
				s.Problems = []workloadv1alpha1.PodProblem{{Pod: "x", Reason: "Made"}}
				return s
			},
			"another node": func(s *summary) *summary {
				s.Nodes = append(s.Nodes, workloadv1alpha1.NodeSummary{Name: "x"})
				return s
			},
			"a node less":        func(s *summary) *summary { s.Nodes = s.Nodes[1:]; return s },
			"another order":      func(s *summary) *summary { slices.Reverse(s.Nodes); return s },
			"another generation": func(s *summary) *summary { s.ObservedGeneration = 7; return s },
		} {
			b.change(func(o managertest.Object) { statusOf(o).Pods = edit(want.DeepCopy()) })
			after(2 * time.Second)
			if diff := cmp.Diff(want, statusOf(b.object()).Pods); diff != "" {
				b.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
}

// TestWithoutIntervalEachChangeIsWritten changes a Pod again after each write. There is no grace period either.
func TestWithoutIntervalEachChangeIsWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.wantWrites("none")
		b.pod("a", true)
		for range 5 {
			b.wantWrites("1/1 ready on node-1")
			b.ready("a", false)
			b.wantWrites("0/1 ready on node-1")
			b.ready("a", true)
		}
	}, "--status-aggregation-interval=0")
}

// TestSummaryIsNoObservation has an object that no other controller has seen. The CRDs give it a generation.
func TestSummaryIsNoObservation(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		if s := statusOf(b.object()); s.ObservedGeneration != -1 || s.Conditions != nil {
			b.Errorf("status %+v, want generation -1 and no conditions", s)
		}
	})
}

// TestEmptyCacheWritesNothing deletes the CRD of the object, and creates both again, as a restore from a backup
// does. Its Deployment and its Pods stay.
func TestEmptyCacheWritesNothing(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		next, resource := b.object(), map[string]string{"Foo": "foos.", "Icecream": "icecreams."}[b.kind.Kind]+b.kind.Group
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName(resource)
		b.Delete(crd)
		after(time.Minute)
		b.wantWrites("")

		b.InstallCRDs(crds+"samplecontroller.k8s.io_foos.yaml", crds+"controller.nicoleh.io_icecreams.yaml")
		next.SetUID("")
		next.SetResourceVersion("")
		statusOf(next).Pods = nil
		b.Create(next)
		after(500 * ms)
		managertest.Update(b.Env, "default", "web", func(d *appsv1.Deployment) { d.OwnerReferences = controlledBy(b.object(), b.kind) })
		after(time.Minute)
		b.wantWrites("1/1 ready on node-1")
	})
}
