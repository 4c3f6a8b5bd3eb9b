// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// TestPatchAndStatus writes an object and its status in one call, and deletes it when it is told to.
func TestPatchAndStatus(t *testing.T) {
	const ns = "self-patch"
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		return controller.For[*Widget](c).Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
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
// then must not tell of the conflict.
func TestStatusIsNotWrittenFromStaleCache(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c)
		configMaps := controller.Owns[*corev1.ConfigMap](sets)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := configMaps.Ensure(ctx, r, set.Name, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": set.Labels["a"]} })
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
	v := &vault{err: controller.RetryAfter("VaultFailed", errors.New("503"), time.Minute)}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
			v.calls = append(v.calls, "put")
			return v.err
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(v.calls); n < 9 || n > 11 {
			t.Errorf("%d calls in 10 minutes, want one each minute", n)
		}
		expect(t, "Events", e.Events(), "Warning VaultFailed 503")
		if got := failureOf(e); got != "503" {
			t.Errorf("the object fails with %q, want 503", got)
		}
		v.err = controller.RetryAfter("VaultFailed", errors.New("504"), time.Minute)
		time.Sleep(5 * time.Minute)
		expect(t, "Events", e.Events(), "Warning VaultFailed 504")
		v.err = nil
		time.Sleep(2 * time.Minute)
		v.err = controller.RetryAfter("VaultFailed", errors.New("504"), 0)
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		v.calls = nil
		time.Sleep(time.Minute)
		if n := len(v.calls); n < 30 || n > 61 {
			t.Errorf("%d calls in a minute, want one each second", n)
		}
		expect(t, "Events", e.Events(), "Warning VaultFailed 504")
	})
}

// TestSource has a controller with keys from outside of the cluster.
func TestSource(t *testing.T) {
	var seen, started int
	var keys chan cache.ObjectName
	var fail chan error
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		keys, fail = make(chan cache.ObjectName), make(chan error) // of the bubble
		configMaps := controller.For[*corev1.ConfigMap](c)
		configMaps.Source(func(ctx context.Context, enqueue func(cache.ObjectName)) error {
			started++
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
				seen++
			}
			return nil
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Lead()
		e.Create(configMapOf("ns", "a"))
		e.Settle()
		before := seen
		keys <- cache.NewObjectName("ns", "a")
		e.Settle()
		if seen != before+1 {
			t.Errorf("%d calls, want one more than %d", seen, before)
		}
		terms := started
		fail <- errors.New("the queue is gone")
		time.Sleep(time.Minute)
		if started != terms+1 {
			t.Errorf("the source was started %d times, want once more than %d", started, terms)
		}
		keys <- cache.NewObjectName("ns", "a")
		e.Settle()
	})
}
