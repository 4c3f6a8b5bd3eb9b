// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/controller-manager/controller"
)

// TestGetOfOwnedObject gets an owned object, one of another owner and one that does not exist.
func TestGetOfOwnedObject(t *testing.T) {
	const ns = "owned-get"
	var mutex sync.Mutex
	got := map[string]string{}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		secrets := controller.Owns[*corev1.Secret](b)
		return b.Reconcile(func(ctx context.Context, r call) error {
			if _, ok := r.Object(); !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, "own", func(s *corev1.Secret) { s.Data = map[string][]byte{"a": []byte("1")} })
			mutex.Lock()
			defer mutex.Unlock()
			clear(got)
			for _, name := range []string{"own", "foreign", "missing"} {
				if s, ok := secrets.Get(r, name); ok {
					got[name] = string(s.Data["a"])
					s.Data["a"][0] = 'x' // of a copy
				}
			}
			return err
		})
	})
	expectGot := func(t *testing.T, e *Env, want string) {
		t.Helper()
		e.Settle()
		mutex.Lock()
		defer mutex.Unlock()
		if len(got) != 1 || got["own"] != want {
			t.Errorf("got %v, want only the owned Secret with %s", got, want)
		}
	}
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(secretOf(ns, "foreign", ""), owner(ns, nil))
		expectGot(t, e, "1") // by the call for the creation of the Secret
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		expectGot(t, e, "1")
		expect(t, "writes", e.Writes(), "create secrets "+ns+"/own")
	}, "--namespace="+ns)
}

// TestEnsureForMissingOwner calls Ensure although Object returns false.
func TestEnsureForMissingOwner(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c)
		secrets := controller.Owns[*corev1.Secret](b)
		return b.Reconcile(func(ctx context.Context, r call) error {
			_, err := secrets.Ensure(ctx, r, "a", func(*corev1.Secret) {})
			return err
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a")
		e.Delete(configMapOf("ns", "a"))
		e.Settle()
		const want = "ConfigMap ns/a does not exist and cannot own objects: call Ensure only if Object returns true"
		if failure := failureOf(e); failure != want {
			t.Errorf("the object fails with %q, want %q", failure, want)
		}
		expect(t, "writes", e.Writes())
	})
}

// TestStatusInEnsureIsRefused sets the status of an owned object in mutate, which the API server ignores.
func TestStatusInEnsureIsRefused(t *testing.T) {
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c)
		widgets := controller.Owns[*Widget](b)
		return b.Reconcile(func(ctx context.Context, r call) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := widgets.Ensure(ctx, r, m.Name, func(w *Widget) {
				w.Labels, w.Status.Image = map[string]string{"a": "b"}, m.Data["image"]
			})
			return err
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		expectRefusal := func(when string) {
			t.Helper()
			const want = "ensuring Widget ns/a: mutate has changed its status, which Ensure cannot write: leave it to " +
				"the controller that reconciles the Widget"
			if failure := failureOf(e); failure != want {
				t.Errorf("%s, the object fails with %q, want %q", when, failure, want)
			}
			expect(t, "writes "+when, e.Writes())
		}
		m := configMapOf("ns", "a")
		m.Data = map[string]string{"image": "v1"}
		e.Create(m)
		e.Settle()
		expectRefusal("before the creation")
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = nil })
		e.Settle()
		if writes := strings.Join(e.Writes(), ", "); writes != "create widgets.test.example.com ns/a" {
			t.Errorf("writes %s, want the creation", writes)
		}
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"image": "v2"} })
		e.Settle()
		expectRefusal("after the creation")
	})
}
