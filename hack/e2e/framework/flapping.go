// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// flapInterval is how often a Foo changes.
const flapInterval = 100 * time.Millisecond

// Flapping changes Foos by turns, whether or not anybody serves them.
type Flapping struct {
	ns      string
	stop    context.CancelFunc
	running sync.WaitGroup
	changes int
}

// StartFlapping makes the Foos, waits until they are ready and begins to scale them.
func StartFlapping(t *testing.T, ns string, count int) *Flapping {
	t.Helper()
	for i := range count {
		Foos.Create(t, ns, fmt.Sprintf("foo-%d", i), 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &Flapping{ns: ns, stop: cancel}
	s.waitConverged(t, count)
	s.running.Go(func() {
		tick := time.NewTicker(flapInterval)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// The API server may be down: what is then not changed is so in its turn.
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, (i/count+1)%2)
			if err := Foos.TryPatch(ctx, ns, fmt.Sprintf("foo-%d", i%count), patch); err == nil {
				s.changes++
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		s.running.Wait()
	})
	return s
}

// End ends the changes and waits until the Foos have what they ask for.
func (s *Flapping) End(t *testing.T) {
	t.Helper()
	s.stop()
	s.running.Wait()
	all, err := Sample().SamplecontrollerV1alpha1().Foos(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.waitConverged(t, len(all.Items))
	t.Logf("%d Foos were changed %d times", len(all.Items), s.changes)
}

// waitConverged waits until each of so many Foos has its one Deployment, which is as
// the Foo says, and a status that says so.
func (s *Flapping) waitConverged(t *testing.T, count int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%d Foos have what they ask for", count), func(ctx context.Context) error {
		all, err := Sample().SamplecontrollerV1alpha1().Foos(s.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		deployments, err := Kube().AppsV1().Deployments(s.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		replicas := map[string]int32{}
		for _, d := range deployments.Items {
			replicas[d.Name] = *d.Spec.Replicas
		}
		if len(all.Items) != count || len(deployments.Items) != count {
			return fmt.Errorf("there are %d Foos and %d Deployments", len(all.Items), len(deployments.Items))
		}
		for _, foo := range all.Items {
			if err := converged(&foo, replicas[foo.Name]); err != nil {
				return err
			}
		}
		return nil
	})
}

func converged(foo *samplev1alpha1.Foo, replicas int32) error {
	want := *foo.Spec.Replicas
	if !meta.IsStatusConditionTrue(foo.Status.Conditions, "Ready") || foo.Status.ObservedGeneration != foo.Generation ||
		foo.Status.AvailableReplicas != want || replicas != want {
		return fmt.Errorf("foo %s in generation %d wants %d replicas, its Deployment has %d, its status is %+v", foo.Name, foo.Generation, want, replicas, foo.Status)
	}
	return nil
}
