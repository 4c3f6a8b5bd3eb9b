// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// TestUnwantedWriteIsNotRepeated makes a Secret that the controller cannot see while its creation is
// denied. The next try shows that, and the denial is over.
func TestUnwantedWriteIsNotRepeated(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		secrets := controller.Owns[*corev1.Secret](configMaps, controller.Selector("test=ensure"))
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, m.Name, func(s *corev1.Secret) {
				s.Labels = map[string]string{"test": "ensure"}
			})
			return err
		})
	})
	runFailing(t, p, func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", errQuota)
		e.Create(owner("ns", nil))
		sleep(5 * time.Second)
		e.BeforeWrite(nil)
		e.Create(secretOf("ns", "a", "1"))
		e.Writes()
		sleep(5 * time.Minute)
		if n := count(e.Writes(), "create secrets"); n < 1 || n > 6 {
			t.Errorf("%d creates in 5 minutes, want about one each minute", n)
		}
	})
}

// TestFailuresNotInARow fails a write shortly, twice. Between that, nothing has to be written.
func TestFailuresNotInARow(t *testing.T) {
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	runFailing(t, p, func(t *testing.T, e *Env) {
		e.Create(owner("ns", map[string]string{"image": "v1"}))
		sleep(time.Minute)
		e.Events()
		for range 2 {
			rejecting(e, "patch widgets.test.example.com", apierrors.NewInternalError(errors.New("down")))
			e.Writes()
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
			sleep(2 * time.Second)
			if n := count(e.Writes(), "patch widgets"); n < 3 {
				t.Errorf("%d tries, want some", n)
			}
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v1" })
			sleep(20 * time.Second)
		}
		expect(t, "Events", e.Events())
	})
}

// spread returns a program whose cluster-scoped objects own a Secret in each of two namespaces.
func spread() manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		nodes := controller.For[*corev1.Node](c, controller.ClusterScoped())
		secrets := controller.Owns[*corev1.Secret](nodes)
		return nodes.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Node]) (err error) {
			if _, ok := r.Object(); !ok {
				return nil
			}
			for _, ns := range []string{"ending", "other"} {
				_, e := secrets.In(ns).Ensure(ctx, r, "a", func(*corev1.Secret) {})
				err = errors.Join(err, e)
			}
			return err
		})
	})
}

// TestTerminatingNamespaceHidesNoOtherError fails two writes, one because its namespace is being deleted.
func TestTerminatingNamespaceHidesNoOtherError(t *testing.T) {
	runFailing(t, spread(), func(t *testing.T, e *Env) {
		terminating := apierrors.NewForbidden(secretsResource, "a", errors.New("it is being terminated"))
		terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		var failed atomic.Bool
		e.BeforeWrite(func(write string, _ *http.Request) error {
			switch {
			case strings.HasPrefix(write, "create secrets ending/"):
				return terminating
			case strings.HasPrefix(write, "create secrets other/") && failed.CompareAndSwap(false, true):
				return apierrors.NewInternalError(errors.New("down"))
			}
			return nil
		})
		e.createNamespace("ending")
		e.createNamespace("other")
		e.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		sleep(time.Minute)
		if _, ok := Get[*corev1.Secret](e, "other", "a"); !ok {
			t.Errorf("the Secret in the other namespace is not created: %q", e.Writes())
		}
		if n := count(e.Writes(), "create secrets ending/"); n > 3 {
			t.Errorf("%d tries in the namespace that is being deleted, want one for each call", n)
		}
	})
}

// TestExternalErrorHidesNoOther fails a write once, beside an error that is to be retried in an hour.
func TestExternalErrorHidesNoOther(t *testing.T) {
	p := failureProgram()
	var calls atomic.Int32
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c)
		secrets := controller.Owns[*corev1.Secret](widgets)
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			calls.Add(1)
			_, err := secrets.Ensure(ctx, r, w.Name, func(*corev1.Secret) {})
			return errors.Join(controller.RetryAfter("VaultDown", errors.New("503"), time.Hour), err)
		})
	}
	runFailing(t, p, func(t *testing.T, e *Env) {
		var failed atomic.Bool
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.HasPrefix(write, "create secrets") && failed.CompareAndSwap(false, true) {
				return apierrors.NewInternalError(errors.New("down"))
			}
			return nil
		})
		e.Create(widget("ns", "v1"))
		sleep(time.Minute)
		if _, ok := Get[*corev1.Secret](e, "ns", "a"); !ok {
			t.Errorf("the Secret is not created: %q", e.Writes())
		}
		if n := calls.Load(); n > 4 {
			t.Errorf("%d calls in a minute, want few", n)
		}
	})
}

// TestOwnerThatIsNeverDiscovered denies an owner reference as long as the API server has not discovered the
// CRD of the owner.
func TestOwnerThatIsNeverDiscovered(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", apierrors.NewForbidden(secretsResource, "a", errors.New(
			"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion test.example.com/v1")))
		e.Create(widget("ns", "v1"))
		sleep(30 * time.Second)
		all, _ := conditions(e, "ns")
		expect(t, "conditions after 30 s", all, "Reconciling Progressing")
		sleep(2 * time.Minute)
		all, message := conditions(e, "ns")
		expect(t, "conditions later", all, "Stalled WriteDenied")
		expect(t, "Events", e.Events(), "Warning WriteDenied "+message)
		e.Writes()
		sleep(10 * time.Minute)
		if n := count(e.Writes(), "create secrets"); n < 19 || n > 21 {
			t.Errorf("%d tries in 10 minutes, want one each 30 s", n)
		}
	})
}

// TestNoStormOfDifferentMessages has a webhook whose answer differs each time.
func TestNoStormOfDifferentMessages(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		tries := 0
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.HasPrefix(write, "create secrets") {
				tries++
				return webhookDenial(403, time.Now().String())
			}
			return nil
		})
		e.Create(widget("ns", "v1"))
		sleep(10 * time.Minute)
		writes := e.Writes()
		if c, s := count(writes, "create"), count(writes, statusPatch); c != 24 && c != 25 || s != c {
			t.Errorf("%d creates and %d statuses in 10 minutes, want 24 of both", c, s)
		}
		if events := e.Events(); len(events) != 1 {
			t.Errorf("%d Events, want 1", len(events))
		}
	})
}

// TestAlternatingCausesAreReportedOnce has a webhook that denies a write, and fails, by turns.
func TestAlternatingCausesAreReportedOnce(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		tries := 0
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if !strings.HasPrefix(write, "create secrets") {
				return nil
			}
			if tries++; tries%2 == 0 {
				return apierrors.NewInternalError(errors.New("down"))
			}
			return webhookDenial(403, "no")
		})
		e.Create(widget("ns", "v1"))
		sleep(10 * time.Minute)
		var reasons []string
		for _, event := range e.Events() {
			reasons = append(reasons, strings.Fields(event)[1])
		}
		expect(t, "reasons of Events", reasons, "WriteDenied", "WriteFailing", "WriteFailed")
	})
}
