// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// failingWith returns a program whose function returns what of returns, and the number of calls for the
// object.
func failingWith(of func(*corev1.ConfigMap) error) (p manager.Program, calls *atomic.Int32) {
	calls = new(atomic.Int32)
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		return b.Reconcile(func(_ context.Context, r call) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			calls.Add(1)
			return of(m)
		})
	}), calls
}

// TestUserErrorIsReportedOnce changes the object of a user error without and with effect.
func TestUserErrorIsReportedOnce(t *testing.T) {
	const ns = "user-error"
	p, _ := failingWith(func(m *corev1.ConfigMap) error {
		if m.Data["count"] == "" {
			return controller.UserError("BadData", errors.New("no count"))
		}
		return nil
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(owner(ns, nil))
		e.Settle()
		expect(t, "Events", e.Events(), "Warning BadData no count")
		if failure := failureOf(e); failure != "" {
			t.Errorf("the object fails with %q, want no retries", failure)
		}
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"other": "1"} })
		e.Settle()
		expect(t, "Events of the same error", e.Events())
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data["count"] = "1" })
		e.Settle()
		expect(t, "Events without an error", e.Events())
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = nil })
		e.Settle()
		expect(t, "Events after the error has returned", e.Events(), "Warning BadData no count")
	}, "--namespace="+ns)
}

// TestRetryAfterEndsByItself has an outage of an external system that ends while nothing changes.
func TestRetryAfterEndsByItself(t *testing.T) {
	const ns, again = "retry-after", 1500 * time.Millisecond
	var up, succeeded atomic.Bool
	p, calls := failingWith(func(*corev1.ConfigMap) error {
		if up.Load() {
			succeeded.Store(true)
			return nil
		}
		return controller.RetryAfter("VaultFailed", errors.New("503"), again)
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		began := time.Now()
		e.Create(owner(ns, nil))
		e.until("call the function again", func() string { return unless(calls.Load() >= 3, "it waits") })
		if took := time.Since(began); took < 2*again {
			t.Errorf("3 calls in %v, want them %v apart", took, again)
		}
		expect(t, "Events", e.Events(), "Warning VaultFailed 503")
		up.Store(true)
		e.until("succeed", func() string { return unless(succeeded.Load(), "it still fails") })
		expect(t, "Events after the outage", e.Events())
	}, "--namespace="+ns)
}
