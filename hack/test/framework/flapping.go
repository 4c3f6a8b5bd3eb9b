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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// flapInterval is how often a Foo changes.
const flapInterval = 100 * time.Millisecond

// Flapping changes Foos in turn, whether or not a daemon is running.
type Flapping struct {
	ns      string
	count   int
	stop    context.CancelFunc
	running sync.WaitGroup
	changes int
}

// StartFlapping creates the Foos, waits until they are Ready and starts to scale them.
func StartFlapping(t *testing.T, ns string, count int) *Flapping {
	t.Helper()
	for i := range count {
		Foos.Create(t, ns, fmt.Sprintf("foo-%d", i), 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &Flapping{ns: ns, count: count, stop: cancel}
	s.waitConverged(t)
	s.running.Go(func() {
		tick := time.NewTicker(flapInterval)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// The API server may be down. A missed change is made in the Foo's next turn.
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

// End stops the changes and waits until the Foos have the replicas that they want.
func (s *Flapping) End(t *testing.T) {
	t.Helper()
	s.stop()
	s.running.Wait()
	s.waitConverged(t)
	t.Logf("%d Foos were changed %d times", s.count, s.changes)
}

// waitConverged waits until each Foo has the replicas that it wants, and checks that each has
// exactly one Deployment.
func (s *Flapping) waitConverged(t *testing.T) {
	t.Helper()
	for i := range s.count {
		name := fmt.Sprintf("foo-%d", i)
		clustertest.WaitUntil(t, "Foo "+name+" has converged", func(ctx context.Context) error {
			foo, err := Foos.Get(ctx, s.ns, name)
			if err != nil {
				return err
			}
			d, err := Kube().AppsV1().Deployments(s.ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			want := *foo.Spec.Replicas
			if !meta.IsStatusConditionTrue(foo.Status.Conditions, "Ready") || foo.Status.ObservedGeneration != foo.Generation ||
				foo.Status.AvailableReplicas != want || *d.Spec.Replicas != want {
				return fmt.Errorf("generation %d wants %d replicas, the Deployment has %d, the status is %+v", foo.Generation, want, *d.Spec.Replicas, foo.Status)
			}
			return nil
		})
	}
	deployments, err := Kube().AppsV1().Deployments(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(deployments.Items) != s.count {
		t.Errorf("there are %d Deployments for %d Foos", len(deployments.Items), s.count)
	}
}
