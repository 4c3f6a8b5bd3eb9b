// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
)

// answer is an answer of the API server with this code and reason.
func answer(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func TestRefusedStatusIsReportedOnce(t *testing.T) {
	const oldSchema = "failed to create typed patch object (default/example; /, Kind=Foo): .status.selector: field not declared in schema"
	for name, test := range map[string]struct {
		err  error
		want string // end of the Event's message
	}{
		"schema of an older CRD":    {answer(http.StatusInternalServerError, "", oldSchema), oldSchema + "; apply the CRDs of this version"},
		"enum of an older CRD":      {answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Foo "example" is invalid: status.x: Unsupported value`), "; apply the CRDs of this version"},
		"policy":                    {answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `foos "example" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no`), "denied request: no"},
		"webhook":                   {answer(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "w" denied the request: no`), `admission webhook "w" denied the request: no`},
		"webhook, as if gone":       {answer(http.StatusNotFound, metav1.StatusReasonNotFound, `admission webhook "w" denied the request: no`), `admission webhook "w" denied the request: no`},
		"webhook, as if a conflict": {answer(http.StatusConflict, metav1.StatusReasonConflict, `admission webhook "w" denied the request: no`), `admission webhook "w" denied the request: no`},
		"a long message":            {answer(http.StatusForbidden, "", strings.Repeat("ä", 2000)), "ä..."},
	} {
		t.Run(name, func(t *testing.T) {
			overKinds(t, func(t *testing.T, kind kind) {
				f := newFixture(t, kind, kind.example())
				f.serve()
				f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
				refused := true
				f.refuseStatus(&refused, test.err)
				f.update(available(0))
				f.observe()
				for range 5 {
					if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, test.err) {
						t.Fatalf("sync() = %v, want the API server's answer, so that it is retried", err)
					}
					f.clock.Step(time.Minute)
				}
				if n := len(f.events.Events); n != 1 {
					t.Fatalf("%d Events for five refusals, want one", n)
				}
				event := <-f.events.Events
				if !strings.HasPrefix(event, "Warning StatusWriteFailed Status cannot be written: ") || !strings.HasSuffix(event, test.want) || len(event) > 1024 {
					t.Errorf("Event %q, want a short one that ends in %q", event, test.want)
				}

				// It is written as soon as it is accepted, and the next refusal is a new one.
				refused = false
				f.sync()
				if meta.IsStatusConditionTrue(*statusOf(f.object()).conditions, "Ready") {
					t.Error("the status was not written")
				}
				f.wantEvents()
				f.clock.Step(time.Minute)
				refused = true
				f.update(ready)
				f.observe()
				_, _ = f.controller.Sync(t.Context(), key)
				if n := len(f.events.Events); n != 1 {
					t.Errorf("%d Events after another refusal, want one", n)
				}
			})
		})
	}
}

// A webhook that is restarted fails for some seconds.
func TestHiccupOfStatusWriteIsNotReported(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
		failing := answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, `failed calling webhook "w": connection refused`)
		f.refuseStatus(new(true), failing)
		f.update(available(0))
		f.observe()
		try := func() {
			t.Helper()
			if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, failing) {
				t.Fatalf("sync() = %v, want the API server's answer", err)
			}
		}
		for range 5 {
			try()
			f.clock.Step(time.Second)
		}
		f.wantEvents()
		f.clock.Step(5 * time.Second)
		try()
		try()
		f.wantEvents("Warning StatusWriteFailed Status cannot be written: " + failing.Error())
	})
}

// TestStatusWithoutSubresource serves a kind without the subresource status. The API server then
// answers a status write as if the object did not exist.
func TestStatusWithoutSubresource(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, kind, kind.example())
			f.serve()
			f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
			missing := true
			f.react(&f.sample.Fake, "patch", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return missing, nil, apierrors.NewNotFound(kind.resources().GroupResource(), key.Name)
			})
			f.update(available(0))
			f.wantSync(writes.ProbeInterval, "patch objects/status", "list objects")
			if denied := writes.Summary(f.writes.Denied()); !strings.HasPrefix(denied, kind.resource+"/status."+kind.Group+" is not served") {
				t.Errorf("the controller lacks %q, want the subresource", denied)
			}

			// The Deployment is still kept, and no status is written before the next probe.
			f.drift()
			f.wantSync(writes.ProbeInterval, "patch deployments")
			f.pass(writes.ProbeInterval - time.Second)
			f.wantSync(time.Second)
			f.pass(time.Second)
			f.wantSync(writes.ProbeInterval, "patch objects/status", "list objects")

			missing = false
			f.pass(writes.ProbeInterval)
			f.wantSync(0, "patch objects/status")
			if denied := f.writes.Denied(); len(denied) > 0 {
				t.Errorf("the controller lacks %v after a write, want nothing", denied)
			}
			f.wantEvents()
		})
	})
}

// pass lets time pass for the controller and for its transport, in a synctest bubble.
func (f *fixture) pass(d time.Duration) {
	time.Sleep(d)
	f.clock.Step(d)
}

// The object was re-created, so it is not its kind that lacks the subresource.
func TestStatusOfRecreatedObjectIsNotMissing(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		another := f.object()
		another.SetUID("uid-another")
		f.react(&f.sample.Fake, "list", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			list, err := f.sample.Tracker().List(kind.resources(), kind.GroupVersionKind, "none")
			return true, list, errors.Join(err, meta.SetList(list, []runtime.Object{another}))
		})
		f.react(&f.sample.Fake, "patch", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(kind.resources().GroupResource(), key.Name)
		})
		f.update(available(0))
		f.wantSync(0, "patch objects/status", "list objects")
		if denied := f.writes.Denied(); len(denied) > 0 {
			t.Errorf("the controller lacks %v, want nothing", denied)
		}
		f.wantStale()
	})
}

// The read after a missing status fails.
func TestUnreadableObjectIsNeitherGoneNorUnserved(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		down := apierrors.NewServiceUnavailable("down")
		f.react(&f.sample.Fake, "list", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, down })
		f.react(&f.sample.Fake, "patch", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(kind.resources().GroupResource(), key.Name)
		})
		f.update(available(0))
		f.observe()
		for range 2 {
			if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, down) || errors.Is(err, reconcile.ErrStale) {
				t.Errorf("sync() = %v, want %v", err, down)
			}
		}
		if !slices.Contains(f.calls(), "patch objects/status") || len(f.writes.Denied()) > 0 {
			t.Errorf("calls %v, missing %v", f.calls(), f.writes.Denied())
		}
	})
}
