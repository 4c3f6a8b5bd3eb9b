// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// history is what a watch on one resource in one namespace has told, in its order.
// That order is the API server's: what is never seen in between never was.
type history[T metav1.Object] struct {
	mutex   sync.Mutex
	changes []change[T]
}

type change[T metav1.Object] struct {
	object  T
	deleted bool
}

// record begins a history with what there is now.
func record[T metav1.Object](t *testing.T, start func(context.Context, metav1.ListOptions) (watch.Interface, error)) *history[T] {
	t.Helper()
	watcher, err := start(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &history[T]{}
	ctx, stop := context.WithCancel(t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		for h.follow(watcher) && ctx.Err() == nil {
			// The API server ends watches when it likes; the next goes on from there.
			next := metav1.ListOptions{}
			if told := h.told(); len(told) > 0 {
				next.ResourceVersion = told[len(told)-1].object.GetResourceVersion()
			}
			if watcher, err = start(ctx, next); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		recording.Wait()
	})
	return h
}

// follow records what a watch tells until it ends. It returns false if the watch told
// of an error: the history ends there, and what is waited for is not told.
func (h *history[T]) follow(watcher watch.Interface) bool {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(T)
		if !ok {
			return false
		}
		h.mutex.Lock()
		h.changes = append(h.changes, change[T]{object, event.Type == watch.Deleted})
		h.mutex.Unlock()
	}
	return true
}

// told returns all changes so far.
func (h *history[T]) told() []change[T] {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.changes)
}

// present returns what there was after the last of the changes.
func present[T metav1.Object](changes []change[T]) map[types.UID]T {
	objects := map[types.UID]T{}
	for _, c := range changes {
		objects[c.object.GetUID()] = c.object
		if c.deleted {
			delete(objects, c.object.GetUID())
		}
	}
	return objects
}

// waitFor waits until the history has come to where all that there is satisfies
// check.
func (h *history[T]) waitFor(t *testing.T, what string, check func(objects []T) error) {
	t.Helper()
	waitUntil(t, what, func(context.Context) error {
		return check(slices.Collect(maps.Values(present(h.told()))))
	})
}

// wantNeverFewer checks that from when the counts of all objects first added up to
// want they were never fewer.
func (h *history[T]) wantNeverFewer(t *testing.T, what string, want int, count func(T) int) {
	t.Helper()
	counts := map[types.UID]int{}
	reached := false
	for _, c := range h.told() {
		counts[c.object.GetUID()] = count(c.object)
		if c.deleted {
			delete(counts, c.object.GetUID())
		}
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if reached && sum < want {
			t.Errorf("there were %d %s when %s changed (deleted: %v), want never fewer than %d", sum, what, c.object.GetName(), c.deleted, want)
			return
		}
		reached = reached || sum >= want
	}
	if !reached {
		t.Errorf("there were never %d %s", want, what)
	}
}

// availability is the history of what serves in a namespace.
type availability struct {
	pods        *history[*corev1.Pod]
	deployments *history[*appsv1.Deployment]
}

func recordAvailability(t *testing.T, ns string) availability {
	t.Helper()
	return availability{
		pods:        record[*corev1.Pod](t, kube.CoreV1().Pods(ns).Watch),
		deployments: record[*appsv1.Deployment](t, kube.AppsV1().Deployments(ns).Watch),
	}
}

// wantNeverFewer waits until the Pods of the named Deployment are all that there
// are, and checks that there was no time with fewer available, be it by what the
// Pods or by what the Deployments say.
func (a availability) wantNeverFewer(t *testing.T, ns, name string, want int) {
	t.Helper()
	replicaSets := replicaSetsOf(t, ns, name)
	a.pods.waitFor(t, "only Pods of Deployment "+name+" are left", func(pods []*corev1.Pod) error {
		ours := 0
		for _, pod := range pods {
			if owner := metav1.GetControllerOf(pod); owner != nil && replicaSets[owner.UID] {
				ours++
			}
		}
		if ours != want || len(pods) != want {
			return fmt.Errorf("there are %d Pods, %d of them its own, want %d", len(pods), ours, want)
		}
		return nil
	})
	a.deployments.waitFor(t, "only Deployment "+name+" is left", func(deployments []*appsv1.Deployment) error {
		if len(deployments) != 1 || deployments[0].Name != name {
			return fmt.Errorf("there are %d", len(deployments))
		}
		return nil
	})
	a.pods.wantNeverFewer(t, "Pods available", want, func(pod *corev1.Pod) int {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return 1
			}
		}
		return 0
	})
	a.deployments.wantNeverFewer(t, "replicas available", want, func(d *appsv1.Deployment) int {
		if d.DeletionTimestamp != nil {
			return 0
		}
		return int(d.Status.AvailableReplicas)
	})
}

// replicaSetsOf returns the UIDs of a Deployment's ReplicaSets.
func replicaSetsOf(t *testing.T, ns, name string) map[types.UID]bool {
	t.Helper()
	owner := deployment(t, ns, name).UID
	all, err := kube.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for _, rs := range all.Items {
		if controller := metav1.GetControllerOf(&rs); controller != nil && controller.UID == owner {
			uids[rs.UID] = true
		}
	}
	return uids
}
