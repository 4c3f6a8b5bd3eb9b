// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
)

// TestPatchAndStatus writes an object and its status in one call, and deletes it when it is told to.
func TestPatchAndStatus(t *testing.T) {
	const ns = "self-patch"
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		return controller.For[*Widget](c, controller.MayPatch(), controller.MayPatchStatus(),
			controller.MayDelete()).Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			if w.Labels["done"] != "" {
				return r.Delete(ctx)
			}
			w.Annotations = map[string]string{"seen": "true"}
			w.Status.Image = "seen"
			return errors.Join(r.Patch(ctx, w), r.UpdateStatus(ctx, w))
		})
	}
	resource := "widgets.test.example.com " + ns + "/a"
	status := "widgets/status.test.example.com " + ns + "/a"
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(&Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}})
		e.Settle()
		expect(t, "writes", e.Writes(), "patch "+resource, "patch "+status)
		expectWidget(e, ns, "status", `{"image":"seen","ports":0}`)
		patchWidget(e, ns, `{"spec":{"other":1}}`)
		e.Settle()
		expect(t, "writes", e.Writes())
		patchWidget(e, ns, `{"metadata":{"labels":{"done":"true"}}}`)
		e.Settle()
		expect(t, "writes", e.Writes(), "delete "+resource)
	}, "--namespace="+ns)
}

// TestStatusIsNotWrittenFromStaleCache changes an owned object just before it is written. The status
// must not report the conflict.
func TestStatusIsNotWrittenFromStaleCache(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		configMaps := controller.Owns[*corev1.ConfigMap](sets)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := configMaps.Ensure(ctx, r, set.Name,
				func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": set.Labels["a"]} })
			set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Failed", Status: "False"}}
			if err != nil {
				set.Status.Conditions[0].Status = "True"
			}
			return errors.Join(err, r.UpdateStatus(ctx, set))
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		expect(t, "writes", e.Writes(), "create configmaps ns/a", "patch statefulsets/status.apps ns/a")
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if write == "patch configmaps ns/a" {
				e.BeforeWrite(nil)
				Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Labels = map[string]string{"changed": "true"} })
			}
			return nil
		})
		Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"a": "b"} })
		e.Settle()
		expect(t, "writes", e.Writes(), "patch configmaps ns/a: Conflict", "patch configmaps ns/a")
	})
}

// TestRetryAfter has a controller whose external system is down.
func TestRetryAfter(t *testing.T) {
	down := func(code string, d time.Duration) error {
		return controller.RetryAfter("VaultFailed", errors.New(code), d)
	}
	v := &vault{err: down("503", time.Minute)}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context,
			*controller.Request[*corev1.ConfigMap]) error {
			_, err := v.call("put")
			return err
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		expectCalls := func(next error, in time.Duration, atLeast, atMost int) {
			t.Helper()
			time.Sleep(in)
			synctest.Wait()
			if n := len(v.next(false, next)); n < atLeast || n > atMost {
				t.Errorf("%d calls in %v, want %d to %d", n, in, atLeast, atMost)
			}
		}
		e.Create(configMapOf("ns", "a"))
		time.Sleep(time.Second)
		if got := failureOf(e); got != "503" {
			t.Errorf("the object fails with %q, want 503", got)
		}
		expectCalls(down("504", time.Minute), 10*time.Minute, 10, 11)
		expect(t, "Events", e.Events(), "Warning VaultFailed 503")
		expectCalls(nil, 5*time.Minute, 5, 5)
		expect(t, "Events", e.Events(), "Warning VaultFailed 504")
		expectCalls(down("504", 0), 5*time.Minute, 1, 1)
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		expectCalls(nil, time.Minute, 55, 61) // one each second
		expect(t, "Events", e.Events(), "Warning VaultFailed 504")
	})
}

// TestSource has a controller with keys from outside of the cluster.
func TestSource(t *testing.T) {
	const ns = "source"
	var seen, started atomic.Int32
	var keys chan cache.ObjectName
	var fail chan error
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		keys, fail = make(chan cache.ObjectName), make(chan error) // of the bubble
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=source"))
		configMaps.Source(func(ctx context.Context, enqueue func(cache.ObjectName)) error {
			started.Add(1)
			for {
				select {
				case key := <-keys:
					enqueue(key)
				case err := <-fail:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		return configMaps.Reconcile(func(_ context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			if _, ok := r.Object(); ok {
				seen.Add(1)
			}
			return nil
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Lead()
		m := configMapOf(ns, "a")
		m.Labels = map[string]string{"test": "source"}
		e.Create(m)
		e.Settle()
		expectCall := func() {
			t.Helper()
			before := seen.Load()
			keys <- cache.NewObjectName(ns, "a")
			e.Settle()
			if n := seen.Load(); n != before+1 {
				t.Errorf("%d calls, want one more than %d", n, before)
			}
		}
		expectCall()
		terms := started.Load()
		fail <- errors.New("the queue is gone")
		e.until("start the source again", func() string { return unless(started.Load() > terms, "it has ended") })
		e.Settle()
		if n := started.Load(); n != terms+1 {
			t.Errorf("the source was started %d times, want once more than %d", n, terms)
		}
		expectCall()
	}, "--namespace="+ns)
}

// TestRunningSources has a source that does not return when its context ends.
func TestRunningSources(t *testing.T) {
	var release chan struct{}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		release = make(chan struct{}) // of the bubble
		first, second := controller.For[*corev1.ConfigMap](c), controller.For[*corev1.Secret](c, controller.Queue("secrets"))
		second.Source(func(context.Context, func(cache.ObjectName)) error {
			<-release
			return nil
		})
		a, err := first.Reconcile(nothing)
		if err != nil {
			return nil, err
		}
		b, err := second.Reconcile(func(context.Context, *controller.Request[*corev1.Secret]) error { return nil })
		if err != nil {
			return nil, err
		}
		return controller.Join(a, b)
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		if n := e.controllers[0].(supervisor.Sourced).RunningSources(); n != 1 {
			t.Errorf("%d sources are reported, want 1", n)
		}
		close(release)
		synctest.Wait()
		if n := e.controllers[0].(supervisor.Sourced).RunningSources(); n != 0 {
			t.Errorf("%d sources are reported, want none after they have returned", n)
		}
	})
}
