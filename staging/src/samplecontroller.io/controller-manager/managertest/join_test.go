// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/supervisor"
)

// TestTwoQueuesInOneController has a controller of two kinds with one worker each. A call for an
// object of one kind that takes long does not delay the other kind.
func TestTwoQueuesInOneController(t *testing.T) {
	release := make(chan struct{})
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		release = make(chan struct{}) // of the bubble
		configMaps := controller.For[*corev1.ConfigMap](c)
		configMaps.Explain(func(*controller.Request[*corev1.ConfigMap]) controller.Explanation {
			return controller.Explanation{Next: "wait"}
		})
		first, err := configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
			<-release
			return nil
		})
		if err != nil {
			return nil, err
		}
		sets := controller.For[*appsv1.StatefulSet](c, controller.Queue("statefulsets"), controller.MayPatchStatus())
		second, err := sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, _ := r.Object()
			set.Status.Replicas = 1
			return r.UpdateStatus(ctx, set)
		})
		if err != nil {
			return nil, err
		}
		return controller.Join(first, second)
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		synctest.Wait()
		expect(t, "writes", e.Writes(), "patch statefulsets/status.apps ns/a")
		var queues []string
		for _, loop := range e.controllers[0].(supervisor.Looper).Loops() {
			queues = append(queues, loop.Queue())
		}
		expect(t, "queues", queues, "test-controller", "test-controller-statefulsets")
		explainer := e.controllers[0].(controller.Explainer)
		for name, want := range map[string]string{"a": "wait", "b": "nothing: no cache has the object ns/b"} {
			if e, err := explainer.Explain(cache.NewObjectName("ns", name)); err != nil || e.Next != want {
				t.Errorf("%s: %+v, %v, want %q", name, e, err, want)
			}
		}
		close(release)
	})
}

func TestWrongJoinIsRefused(t *testing.T) {
	done := func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil }
	for want, make := range map[string]func(*controller.Context) (controller.Controller, error){
		"Join needs at least one controller": func(*controller.Context) (controller.Controller, error) { return controller.Join() },
		"two controllers have the queue test-controller: give For the option Queue": func(c *controller.Context) (controller.Controller, error) {
			first, _ := controller.For[*corev1.ConfigMap](c).Reconcile(done)
			second, _ := controller.For[*corev1.ConfigMap](c).Reconcile(done)
			return controller.Join(first, second)
		},
	} {
		errs := failing(t, syncing(make), func(*testing.T, *Env) {})
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}

// TestPacedStatus counts ready Pods in a status, at most once in ten seconds.
func TestPacedStatus(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		sets.Paced(10*time.Second, func(before, after *appsv1.StatefulSet) reconcile.Change {
			if before.Status.ReadyReplicas != after.Status.ReadyReplicas {
				return reconcile.Transition
			}
			return reconcile.OnlyProgress
		})
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			set.Status.Replicas = int32(len(set.Labels["progress"]))
			set.Status.ReadyReplicas = int32(len(set.Labels["ready"]))
			return r.UpdateStatus(ctx, set)
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		const write = "patch statefulsets/status.apps ns/a"
		label := func(name, value string) {
			Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Labels = map[string]string{name: value} })
			e.Settle()
		}
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		label("ready", "x")
		expect(t, "writes of a transition", e.Writes(), write)
		for _, value := range []string{"x", "xx", "xxx"} {
			Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Labels["progress"] = value })
			time.Sleep(time.Second)
		}
		expect(t, "writes of progress", e.Writes())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expect(t, "writes after the interval", e.Writes(), write)
		if set, _ := Get[*appsv1.StatefulSet](e, "ns", "a"); set.Status.Replicas != 3 {
			t.Errorf("the status has %d replicas, want the last state, 3", set.Status.Replicas)
		}
	})
}
