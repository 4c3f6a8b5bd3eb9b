// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/testkit"
	"samplecontroller.io/controller-manager/manager"
)

// syncing returns a program with one controller.
func syncing(make func(*controller.Context) (controller.Controller, error)) manager.Program {
	return manager.Program{Name: "test", Controllers: []controller.Descriptor{{
		Name: "test-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) { return make(c) },
	}}}
}

// TestMissingStatusSubresource answers like the API server if a CRD does not declare the subresource: as
// if the object did not exist. The writes are paused, and the controller is Degraded.
func TestMissingStatusSubresource(t *testing.T) {
	program := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			set.Status.Replicas = 7
			return r.UpdateStatus(ctx, set)
		})
	})
	Run(t, program, func(t *testing.T, e *Env) {
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.Contains(write, "/status") {
				return apierrors.NewNotFound(appsv1.Resource("statefulsets"), "a")
			}
			return nil
		})
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if n := len(e.Writes()); n != 20 {
			t.Errorf("%d writes in 10 minutes, want one in 30 s", n)
		}
		const want = "statefulsets/status.apps is not served: apply the CRDs of this version"
		if denied := testkit.Denied(e.context); denied == nil || denied.Error() != want {
			t.Errorf("denied %v, want %s", denied, want)
		}
		e.BeforeWrite(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "writes once it is served", e.Writes(), "patch statefulsets/status.apps ns/a")
		if denied := testkit.Denied(e.context); denied != nil {
			t.Errorf("denied %v, want none once it is served", denied)
		}
	})
}

// TestNameWithoutLabelIsReported covers an object that has the name but not the label, at first
// and after somebody has removed the label.
func TestNameWithoutLabelIsReported(t *testing.T) {
	program := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c)
		configMaps := controller.Owns[*corev1.ConfigMap](sets, controller.Selector("app=test"))
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			if _, ok := r.Object(); !ok {
				return nil
			}
			_, err := configMaps.Ensure(ctx, r, r.Key().Name, func(m *corev1.ConfigMap) { m.Labels = map[string]string{"app": "test"} })
			return err
		})
	})
	Run(t, program, func(t *testing.T, e *Env) {
		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		for _, name := range []string{"a", "b"} {
			e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		}
		e.Settle()
		Update(e, "ns", "b", func(m *corev1.ConfigMap) { m.Labels = nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		var want []string
		for _, name := range []string{"a", "b"} {
			want = append(want, "Warning NotSelected ConfigMap ns/"+name+" exists, but does not match the selector of Owns, app=test: delete, rename or label it")
		}
		if diff := cmp.Diff(want, e.Events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
}

// TestErrorBesideUserErrorIsRetried joins a user error and another one.
func TestErrorBesideUserErrorIsRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		other   error
		retried bool
	}{
		"none":         {nil, false},
		"another":      {errors.New("the API server is down"), true},
		"a user error": {controller.UserError("Other", errors.New("no name")), false},
	} {
		t.Run(name, func(t *testing.T) {
			syncs := 0
			program := syncing(func(c *controller.Context) (controller.Controller, error) {
				return controller.For[*appsv1.StatefulSet](c).Reconcile(func(_ context.Context,
					r *controller.Request[*appsv1.StatefulSet]) error {
					syncs++
					return fmt.Errorf("syncing: %w", errors.Join(controller.UserError("BadData", errors.New("no number")), tc.other))
				})
			})
			Run(t, program, func(t *testing.T, e *Env) {
				e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
				time.Sleep(time.Hour)
				synctest.Wait()
				if events := e.Events(); syncs > 5 != tc.retried || len(events) != 1 {
					t.Errorf("%d syncs in an hour and the Events %q, want retries: %v, and one Event", syncs, events, tc.retried)
				}
			})
		})
	}
}

func TestEventOfLongUserErrorIsTruncated(t *testing.T) {
	program := syncing(func(c *controller.Context) (controller.Controller, error) {
		return controller.For[*appsv1.StatefulSet](c).Reconcile(func(context.Context,
			*controller.Request[*appsv1.StatefulSet]) error {
			return controller.UserError("BadData", errors.New(strings.Repeat("word ", 4000)))
		})
	})
	Run(t, program, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		if events := e.Events(); len(events) != 1 || len(events[0]) > 1100 || !strings.HasSuffix(events[0], "word ...") {
			t.Errorf("Events %q, want one of about 1000 bytes", events)
		}
	})
}

// TestEventsAtOneTime records several Events about an object at one time of the bubble.
func TestEventsAtOneTime(t *testing.T) {
	program := syncing(func(c *controller.Context) (controller.Controller, error) {
		return controller.For[*appsv1.StatefulSet](c).Reconcile(func(_ context.Context,
			r *controller.Request[*appsv1.StatefulSet]) error {
			for _, reason := range []string{"One", "Two", "Three"} {
				r.Event(corev1.EventTypeNormal, reason, "at one time")
			}
			return nil
		})
	})
	Run(t, program, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		expect(t, "Events", e.Events(), "Normal One at one time", "Normal Two at one time", "Normal Three at one time")
	})
}
