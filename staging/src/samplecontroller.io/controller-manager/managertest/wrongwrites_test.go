// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"samplecontroller.io/controller-manager/controller"
)

// TestKeyOfAnotherScope enqueues keys that cannot be those of a ConfigMap.
func TestKeyOfAnotherScope(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c)
		controller.Watch(b, func(s *corev1.Secret) []cache.ObjectName {
			return []cache.ObjectName{cache.NewObjectName("", s.Name)}
		})
		return b.Reconcile(nothing)
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(secretOf("ns", "a", ""))
		time.Sleep(time.Minute)
		const want = "key a was enqueued by a function of Watch, WatchAs or Source: a ConfigMap has a namespace, but " +
			"the key has none"
		if failure := failureOf(e); failure != want {
			t.Errorf("the key fails with %q, want %q", failure, want)
		}
	})
}

// TestWrongWritesAreRefused makes writes that would do less than they seem to.
func TestWrongWritesAreRefused(t *testing.T) {
	type setCall = *controller.Request[*appsv1.StatefulSet]
	for want, write := range map[string]func(context.Context, setCall, *appsv1.StatefulSet) error{
		"updating the status of StatefulSet ns/a: its spec has been changed, which is not part of the status: write " +
			"it with Patch, before the status": func(ctx context.Context, r setCall, s *appsv1.StatefulSet) error {
			s.Spec.ServiceName, s.Status.Replicas = "b", 7
			return r.UpdateStatus(ctx, s)
		},
		`patching StatefulSet ns/a: the finalizer "example.com/a" would never be removed, because objects that are ` +
			`being deleted are not reconciled: use Finalize, or OnDeletion`: func(ctx context.Context, r setCall, s *appsv1.StatefulSet) error {
			s.Finalizers = []string{"example.com/a"}
			return r.Patch(ctx, s)
		},
	} {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatch(), controller.MayPatchStatus())
			return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
				set, ok := r.Object()
				if !ok {
					return nil
				}
				return write(ctx, r, set)
			})
		})
		Run(t, p, func(t *testing.T, e *Env) {
			e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
			time.Sleep(time.Minute)
			if failure := failureOf(e); failure != want {
				t.Errorf("the object fails with %q, want %q", failure, want)
			}
			expect(t, "writes", e.Writes())
		})
	}
}

// TestStatusAfterPatch changes spec and status of one copy, and writes them in two requests.
func TestStatusAfterPatch(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatch(), controller.MayPatchStatus())
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			set.Spec.ServiceName, set.Status.Replicas = "b", 7
			return errors.Join(r.Patch(ctx, set), r.UpdateStatus(ctx, set))
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		expect(t, "writes", e.Writes(), "patch statefulsets.apps ns/a", "patch statefulsets/status.apps ns/a")
	})
}

// TestWriteOutsideOfCall writes with a request of a call that is over, and while it explains.
func TestWriteOutsideOfCall(t *testing.T) {
	const want = "writing for ConfigMap ns/a: a request can write only in the functions given to Reconcile and " +
		"Finalize, until they return"
	calls := make(chan call, 10)
	var owned *controller.Owned[*corev1.Secret, *corev1.ConfigMap]
	try := func(t *testing.T, r call) {
		t.Helper()
		m, _ := r.Object()
		m.Labels = map[string]string{"a": "b"}
		_, err := owned.Ensure(t.Context(), r, "a", func(*corev1.Secret) {})
		for _, err := range []error{
			err, r.Patch(t.Context(), m), r.UpdateStatus(t.Context(), m), r.Delete(t.Context()),
			owned.Delete(t.Context(), r, "a"),
		} {
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		calls = make(chan call, 10) // of the bubble
		b := controller.For[*corev1.ConfigMap](c, controller.MayPatch(), controller.MayPatchStatus(), controller.MayDelete())
		owned = controller.Owns[*corev1.Secret](b, controller.MayDelete())
		b.Explain(func(r call) controller.Explanation {
			try(t, r)
			return controller.Explanation{}
		})
		return b.Reconcile(func(_ context.Context, r call) error {
			calls <- r
			return nil
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"))
		e.Settle()
		try(t, <-calls)
		if _, err := e.controllers[0].(controller.Explainer).Explain(cache.NewObjectName("ns", "a")); err != nil {
			t.Error(err)
		}
		expect(t, "writes", e.Writes())
	})
}

// TestWriteWithReadConfigIsRefused writes with a client that is neither counted nor limited.
func TestWriteWithReadConfigIsRefused(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		client, err := corev1client.NewForConfig(c.ReadConfig())
		if err != nil {
			return nil, err
		}
		return controller.For[*corev1.ConfigMap](c).Reconcile(func(ctx context.Context, r call) error {
			return client.ConfigMaps("ns").Delete(ctx, r.Key().Name, metav1.DeleteOptions{})
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"))
		time.Sleep(time.Minute)
		const want = "clients from Context.ReadConfig cannot write: use Context.ClientConfig"
		if failure := failureOf(e); !strings.Contains(failure, want) {
			t.Errorf("the object fails with %q, want %q", failure, want)
		}
		expect(t, "writes", e.Writes())
	})
}

// TestHintAboutScope creates an object of a kind whose scope is declared wrongly, while there is none yet.
func TestHintAboutScope(t *testing.T) {
	for want, test := range map[string]struct {
		answer error
		opts   []controller.Option
	}{
		"if a ConfigMap has no namespace, give Owns the option ClusterScoped": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false), nil,
		},
		"if a ConfigMap has a namespace, do not give Owns the option ClusterScoped": {
			apierrors.NewMethodNotSupported(corev1.Resource("configmaps"), "create"), []controller.Option{controller.ClusterScoped()},
		},
	} {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			namespaces := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
			configMaps := controller.Owns[*corev1.ConfigMap](namespaces, test.opts...)
			return namespaces.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Namespace]) error {
				_, err := configMaps.In("ns").Ensure(ctx, r, "a", func(*corev1.ConfigMap) {})
				return err
			})
		})
		Run(t, p, func(t *testing.T, e *Env) {
			e.BeforeWrite(func(string, *http.Request) error { return test.answer })
			e.Create(namespaceOf("team", nil))
			time.Sleep(time.Minute)
			if failure := failureOf(e); !strings.HasSuffix(failure, want) {
				t.Errorf("the object fails with %q, want %q at its end", failure, want)
			}
		})
	}
}

// TestLostEvents records Events that are lost.
func TestLostEvents(t *testing.T) {
	for want, event := range map[string]func(record.EventRecorder){
		"an Event about a *managertest.Widget is lost: add its kind in Program.Scheme: no kind is " +
			"registered": func(r record.EventRecorder) {
			r.Event(&Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, corev1.EventTypeNormal, "Seen", "seen")
		},
		`an Event of type "Error" is lost: use Normal or Warning`: func(r record.EventRecorder) {
			r.Eventf(configMapOf("ns", "a"), "Error", "Seen", "seen")
		},
	} {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			recorder := c.Recorder()
			return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context, call) error {
				event(recorder)
				return nil
			})
		})
		errs := failing(t, p, func(t *testing.T, e *Env) {
			e.Create(configMapOf("ns", "a"))
			e.Settle()
			expect(t, "Events", e.Events())
		})
		expectFailure(t, errs, "test-controller is Degraded: "+want)
	}
}

// TestWrongReason returns errors whose reason is not valid in an Event.
func TestWrongReason(t *testing.T) {
	for want, wrong := range map[string]func(error) error{
		`panic: the reason "" of UserError is not in UpperCamelCase, such as SourceMissing`: func(err error) error {
			return controller.UserError("", err)
		},
		`panic: the reason "is down" of RetryAfter is not in UpperCamelCase, such as SourceMissing`: func(err error) error {
			return controller.RetryAfter("is down", err, time.Hour)
		},
	} {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context,
				call) error {
				return wrong(errors.New("a problem"))
			})
		})
		Run(t, p, func(t *testing.T, e *Env) {
			e.Create(configMapOf("ns", "a"))
			time.Sleep(time.Minute)
			if failure := failureOf(e); failure != want {
				t.Errorf("the object fails with %q, want %q", failure, want)
			}
		})
	}
}
