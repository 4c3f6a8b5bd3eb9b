// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/tolerant"
)

// countedFoos is a kind that is only good for counting.
var countedFoos = Adapter[*samplev1alpha1.Foo]{
	Status: func(foo *samplev1alpha1.Foo) *workloadv1alpha1.Status { return &foo.Status.Status },
}

// fooWith returns a Foo of generation 2 whose Ready condition has a reason.
func fooWith(name, reason string) *samplev1alpha1.Foo {
	status := metav1.ConditionFalse
	if reason == "Available" {
		status = metav1.ConditionTrue
	}
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 2},
		Status: samplev1alpha1.FooStatus{Status: workloadv1alpha1.Status{
			ObservedGeneration: 2, Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}},
		}},
	}
}

// pause adds the condition of a paused object.
func pause(foo *samplev1alpha1.Foo) {
	meta.SetStatusCondition(&foo.Status.Conditions, metav1.Condition{Type: "Paused", Status: metav1.ConditionTrue,
		Reason: "PausedByNamespace"})
}

func TestStateOfObjects(t *testing.T) {
	changed := func(change func(*samplev1alpha1.Foo)) *samplev1alpha1.Foo {
		foo := fooWith("a", "Available")
		change(foo)
		return foo
	}
	for name, test := range map[string]struct {
		foo  *samplev1alpha1.Foo
		want controller.State
	}{
		"ready":                       {fooWith("a", "Available"), controller.State{Condition: "Ready", Reason: "Available"}},
		"reconciling":                 {fooWith("a", "Progressing"), controller.State{Condition: "Reconciling", Reason: "Progressing"}},
		"stalled":                     {fooWith("a", "WriteDenied"), controller.State{Condition: "Stalled", Reason: "WriteDenied"}},
		"a reason of another version": {fooWith("a", "Enchanted"), controller.State{Condition: "Stalled", Reason: "Other"}},
		"new": {&samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Generation: 1}},
			controller.State{Condition: "Reconciling", Reason: "Unobserved"}},
		"a status for an earlier generation": {changed(func(foo *samplev1alpha1.Foo) { foo.Generation++ }), controller.State{Condition: "Reconciling", Reason: "Unobserved"}},
		"paused":                             {changed(pause), controller.State{Condition: "Paused", Reason: "Paused"}},
		"changed while paused": {changed(func(foo *samplev1alpha1.Foo) {
			pause(foo)
			foo.Generation++
		}), controller.State{Condition: "Paused", Reason: "Paused"}},
		"deleted while paused": {changed(func(foo *samplev1alpha1.Foo) {
			pause(foo)
			foo.DeletionTimestamp = &metav1.Time{}
		}), controller.State{Condition: "Ready", Reason: "Available"}},
		"undecodable": {changed(func(foo *samplev1alpha1.Foo) {
			foo.Annotations = map[string]string{tolerant.AnnotationDecodeError: "spec: array where object is expected"}
		}), controller.State{Condition: "Stalled", Reason: "Undecodable"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := countedFoos.state(test.foo); got != test.want || !slices.Contains(States(), got) {
				t.Errorf("state %v, want %v, one of %v", got, test.want, States())
			}
		})
	}
}

// BenchmarkCountStates counts 100,000 objects, as each scrape does.
func BenchmarkCountStates(b *testing.B) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for i := range 100_000 {
		if err := store.Add(fooWith(fmt.Sprint(i), reasons[i%len(reasons)])); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		counts := map[controller.State]int{}
		for _, obj := range store.List() {
			counts[countedFoos.state(obj.(*samplev1alpha1.Foo))]++
		}
		if len(counts) != len(reasons) {
			b.Fatal(counts)
		}
	}
}
