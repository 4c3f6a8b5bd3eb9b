// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/reconcile"
)

// TestTwoQueuesInOneController has a controller of two kinds with one worker each. A call for an
// object of one kind that takes long does not delay the other kind.
func TestTwoQueuesInOneController(t *testing.T) {
	const ns = "two-queues"
	var release chan struct{}
	var blocked atomic.Bool
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].Workers = 1
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		release = make(chan struct{}) // of the bubble
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=queue"))
		configMaps.Explain(func(*controller.Request[*corev1.ConfigMap]) controller.Explanation {
			return controller.Explanation{Next: "wait"}
		})
		first, err := configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
			blocked.Store(true)
			<-release
			return nil
		})
		if err != nil {
			return nil, err
		}
		widgets := controller.For[*Widget](c, controller.Queue("widgets"), controller.MayPatchStatus())
		second, err := widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			w.Status.Image = "seen"
			return r.UpdateStatus(ctx, w)
		})
		if err != nil {
			return nil, err
		}
		return controller.Join(first, second)
	}
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		m := configMapOf(ns, "a")
		m.Labels = map[string]string{"test": "queue"}
		e.Create(m)
		e.until("call the function for the ConfigMap", func() string { return unless(blocked.Load(), "it is not called") })
		e.Create(&Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}})
		e.until("write the status of the Widget", func() string {
			w, _ := Get[*Widget](e, ns, "a")
			return unless(w != nil && w.Status.Image == "seen", "it is not written")
		})
		expect(t, "writes", e.Writes(), "patch widgets/status.test.example.com "+ns+"/a")
		var queues []string
		for _, loop := range e.controllers[0].(supervisor.Looper).Loops() {
			queues = append(queues, loop.Queue())
		}
		expect(t, "queues", queues, "owner-controller", "owner-controller-widgets")
		explainer := e.controllers[0].(controller.Explainer)
		for name, want := range map[string]string{"a": "wait", "b": "nothing: no cache has the object " + ns + "/b"} {
			if e, err := explainer.Explain(cache.NewObjectName(ns, name)); err != nil || e.Next != want {
				t.Errorf("%s: %+v, %v, want %q", name, e, err, want)
			}
		}
		close(release)
		e.Settle()
	}, "--namespace="+ns)
}

// unless returns why, for [Env.until], unless ok.
func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
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

// TestPacedStatus counts progress in a status, and reports a transition in it.
func TestPacedStatus(t *testing.T) {
	const ns, interval, steps = "paced-status", 5 * time.Second, 10
	var throttled atomic.Bool
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.MayPatchStatus())
		widgets.Paced(interval, func(before, after *Widget) reconcile.Change {
			if before.Status.Image != after.Status.Image {
				return reconcile.Transition
			}
			return reconcile.OnlyProgress
		})
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			if wait := r.Throttled(); wait > 0 { // after the write of the transition
				throttled.Store(true)
				r.RequeueAfter(wait)
				return nil
			}
			w.Status.Image, w.Status.Ports = w.Labels["ready"], int32(len(w.Labels["progress"]))
			return r.UpdateStatus(ctx, w)
		})
	}
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		const write = "patch widgets/status.test.example.com " + ns + "/a"
		e.Create(&Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}})
		Update(e, ns, "a", func(w *Widget) { w.Labels = map[string]string{"ready": "x"} })
		e.Settle()
		expect(t, "writes of a transition", e.Writes(), write)
		begin := time.Now()
		for i := range steps {
			Update(e, ns, "a", func(w *Widget) { w.Labels["progress"] = strings.Repeat("x", i+1) })
			e.Settle()
		}
		e.until("write the last progress", func() string {
			w, _ := Get[*Widget](e, ns, "a")
			return unless(w.Status.Ports == steps, "it is not written")
		})
		e.Settle()
		most := int(time.Since(begin)/interval) + 1
		if n := len(e.Writes()); n < 1 || n > most {
			t.Errorf("%d writes of progress in %v, want 1 to %d", n, time.Since(begin), most)
		}
		if !throttled.Load() {
			t.Error("the object was never throttled")
		}
	}, "--namespace="+ns)
}
