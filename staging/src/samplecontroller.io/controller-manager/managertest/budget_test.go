// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/testkit"
)

const stoppedMessage = "deletions are stopped: test-controller has deleted 3 objects within a minute, as many as " +
	"--max-deletions-per-minute allows; if it is to delete more, send a PUT to " +
	"/debug/deletions/test-controller of the leader"

// withBudget runs a test of a controller that may delete 3 Secrets a minute, one for each of 10 Widgets.
func withBudget(t *testing.T, body func(t *testing.T, e *Env)) {
	t.Helper()
	Run(t, failureProgram(showing), func(t *testing.T, e *Env) {
		createWidgets(e)
		body(t, e)
	}, "--max-deletions-per-minute=3")
}

func createWidgets(e *Env) {
	e.t.Helper()
	for i := range 10 {
		w := widget("ns", "v1")
		w.Name = fmt.Sprint("a", i)
		e.Create(w)
	}
	e.Settle()
	e.Writes()
	e.Events()
}

// unset makes the controller delete the Secrets of the Widgets from first to last.
func unset(e *Env, first, last int) {
	e.t.Helper()
	for i := first; i <= last; i++ {
		Update(e, "ns", fmt.Sprint("a", i), func(w *Widget) { w.Spec.Containers = nil })
	}
	e.Settle()
}

// deletions returns how many Secrets were deleted, and how many deletions were rejected.
func deletions(e *Env) (made, rejected int) {
	e.t.Helper()
	for _, w := range e.Writes() {
		if !strings.HasPrefix(w, "delete secrets ") {
			continue
		}
		if made++; strings.Contains(w, ": ") {
			made--
			rejected++
		}
	}
	return made, rejected
}

func wantDeletions(t *testing.T, e *Env, when string, want int) {
	t.Helper()
	if made, _ := deletions(e); made != want {
		t.Errorf("%s: %d Secrets are deleted, want %d", when, made, want)
	}
}

func TestDeletionsStopAtBudget(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		unset(e, 0, 2)
		wantDeletions(t, e, "as many as allowed", 3)
		if why := testkit.Denied(e.context); why != nil {
			t.Errorf("the controller is Degraded: %v", why)
		}
		unset(e, 3, 4)
		wantDeletions(t, e, "more", 0)
		if why := testkit.Denied(e.context); why == nil || why.Error() != stoppedMessage {
			t.Errorf("Denied returns %v\nwant %s", why, stoppedMessage)
		}
		w, _ := Get[*Widget](e, "ns", "a3")
		message := "deleting Secret ns/a3: " + stoppedMessage
		if len(w.Status.Conditions) != 1 || w.Status.Conditions[0].Type != "Stalled" ||
			w.Status.Conditions[0].Reason != "DeletionsStopped" || w.Status.Conditions[0].Message != message {
			t.Errorf("conditions %v, want Stalled with the message %q", w.Status.Conditions, message)
		}
		expect(t, "Events", e.Events(), "Warning DeletionsStopped "+message,
			"Warning DeletionsStopped "+strings.Replace(message, "ns/a3", "ns/a4", 1))
		Update(e, "ns", "a9", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		time.Sleep(10 * time.Minute)
		e.Settle()
		expect(t, "writes of ten minutes", e.Writes(), "patch secrets ns/a9", "patch widgets/status.test.example.com ns/a9")
		expect(t, "Events of ten minutes", e.Events())
		if n := strings.Count(e.logged(), "Stopped all deletions of the controller"); n != 1 {
			t.Errorf("the log says it %d times, want once", n)
		}
		e.AllowDeletions("test-controller")
		time.Sleep(31 * time.Second)
		e.Settle()
		wantDeletions(t, e, "allowed", 2)
		unset(e, 5, 8)
		wantDeletions(t, e, "still allowed", 4)
		if w, _ = Get[*Widget](e, "ns", "a3"); len(w.Status.Conditions) != 0 || testkit.Denied(e.context) != nil {
			t.Errorf("conditions %v, Denied %v, want none", w.Status.Conditions, testkit.Denied(e.context))
		}
	})
}

func TestDeletionsAreCountedForAMinute(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		unset(e, 0, 1)
		time.Sleep(40 * time.Second)
		unset(e, 2, 2)
		time.Sleep(21 * time.Second) // the first two count no more
		unset(e, 3, 4)
		wantDeletions(t, e, "in 61 s", 5)
		unset(e, 5, 5)
		wantDeletions(t, e, "the fourth in a minute", 0)
	})
}

// TestRejectedDeletionsDoNotCount has an API server that denies deletions at first.
func TestRejectedDeletionsDoNotCount(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if !strings.HasPrefix(write, "delete ") {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", fmt.Errorf("admission webhook denied the request: no"))
		})
		unset(e, 0, 9)
		if made, rejected := deletions(e); made != 0 || rejected < 10 {
			t.Errorf("%d deletions are made and %d rejected, want 0 and all", made, rejected)
		}
		if why := testkit.Denied(e.context); why != nil {
			t.Errorf("the controller is Degraded: %v", why)
		}
		e.BeforeWrite(nil)
		time.Sleep(time.Minute)
		e.Settle()
		wantDeletions(t, e, "no longer denied", 3)
	})
}

// TestRetriedDeletionCountsOnce has an API server that answers each deletion with an error. Whether the object was
// deleted all the same is known only after NotFound.
func TestRetriedDeletionCountsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		counts bool
	}{
		"error of a webhook": {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"no answer":          {errors.New("unexpected EOF"), true},
		"connection refused": {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), false},
		"gone":               {apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			withBudget(t, func(t *testing.T, e *Env) {
				e.BeforeWrite(func(write string, _ *http.Request) error {
					if strings.HasPrefix(write, "delete ") {
						return test.err
					}
					return nil
				})
				unset(e, 0, 2)
				time.Sleep(time.Minute)
				if why := testkit.Denied(e.context); why != nil {
					t.Errorf("the controller is Degraded after tries of 3 deletions: %v", why)
				}
				unset(e, 3, 3)
				if why := testkit.Denied(e.context); (why != nil) != test.counts {
					t.Errorf("Denied returns %v after tries of 4 deletions, want an error: %v", why, test.counts)
				}
			})
		})
	}
}

// wantStopped checks whether deletions are stopped.
func wantStopped(t *testing.T, e *Env, when string, want bool) {
	t.Helper()
	e.Settle()
	if why := testkit.Denied(e.context); (why != nil) != want {
		t.Errorf("%s: Denied returns %v, want an error: %v", when, why, want)
	}
}

func TestStopEndsWithItsCause(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		restore := func(name string) {
			Update(e, "ns", name, func(w *Widget) { w.Spec = widget("ns", "v1").Spec })
		}
		unset(e, 0, 5)
		restore("a3")
		wantStopped(t, e, "two Secrets are still to be deleted", true)
		restore("a4")
		last, _ := Get[*Widget](e, "ns", "a5")
		e.Delete(last)
		wantStopped(t, e, "no Secret is to be deleted", false)
		e.Writes()
		time.Sleep(time.Minute)
		unset(e, 6, 8)
		wantDeletions(t, e, "a minute later", 3)
	})
}

// TestPauseKeepsStop pauses a namespace for longer than deletions count, as an operator may do who sees the stop.
func TestPauseKeepsStop(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		unset(e, 0, 4)
		annotateNamespace(e, "true")
		wantStopped(t, e, "paused", true)
		e.Writes()
		time.Sleep(2 * time.Minute)
		annotateNamespace(e, "-")
		time.Sleep(time.Minute)
		wantStopped(t, e, "resumed", true)
		wantDeletions(t, e, "resumed", 0)
	})
}

// TestFailedCallKeepsStop has a function that fails before it can say what is to be deleted.
func TestFailedCallKeepsStop(t *testing.T) {
	var down atomic.Bool
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		return controller.For[*Widget](c, controller.MayDelete()).Reconcile(func(ctx context.Context,
			r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			switch {
			case !ok:
				return nil
			case down.Load():
				return controller.RetryAfter("Down", errors.New("no answer"), time.Minute)
			case len(w.Spec.Containers) == 0 || w.Spec.Containers[0].Image == "":
				return r.Delete(ctx)
			}
			return nil
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		createWidgets(e)
		unset(e, 0, 3)
		down.Store(true)
		Update(e, "ns", "a3", func(w *Widget) { w.Spec.Containers = []corev1.Container{{Name: "b"}} })
		wantStopped(t, e, "the function fails", true)
		time.Sleep(90 * time.Second)
		down.Store(false)
		time.Sleep(2 * time.Minute)
		wantStopped(t, e, "the function works again", true)
		if _, ok := Get[*Widget](e, "ns", "a3"); !ok {
			t.Error("the fourth object is deleted, though nobody has allowed it")
		}
	}, "--max-deletions-per-minute=3")
}

// TestStopEndsWithObjectInDeletion has objects whose deletion waits for the finalizer of another program.
func TestStopEndsWithObjectInDeletion(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		unset(e, 0, 4)
		for _, name := range []string{"a3", "a4"} {
			wantStopped(t, e, "before the deletion of "+name, true)
			Update(e, "ns", name, func(w *Widget) { w.Finalizers = []string{"example.com/other"} })
			w, _ := Get[*Widget](e, "ns", name)
			e.Delete(w)
		}
		wantStopped(t, e, "both are being deleted", false)
	})
}

func TestNewLimitEndsStop(t *testing.T) {
	runConfigured(t, failureProgram(showing), "{max-deletions-per-minute: 3}", func(t *testing.T, e *Env, write func(string)) {
		createWidgets(e)
		unset(e, 0, 4)
		wantDeletions(t, e, "first limit", 3)
		write("{max-deletions-per-minute: 100}")
		time.Sleep(32 * time.Second)
		wantStopped(t, e, "higher limit", false)
		wantDeletions(t, e, "higher limit", 2)
		write("{max-deletions-per-minute: 5}")
		time.Sleep(time.Second)
		unset(e, 5, 6)
		wantStopped(t, e, "as many as the limit in the last minute", true)
		write("{max-deletions-per-minute: 0}")
		time.Sleep(time.Hour)
		write("{max-deletions-per-minute: 5}")
		time.Sleep(time.Second)
		wantStopped(t, e, "an hour without a limit", false)
	})
}

func TestNewLimitEndsAllowance(t *testing.T) {
	runConfigured(t, failureProgram(showing), "{max-deletions-per-minute: 3}", func(t *testing.T, e *Env, write func(string)) {
		createWidgets(e)
		e.AllowDeletions("test-controller")
		unset(e, 0, 3)
		wantDeletions(t, e, "allowed", 4)
		time.Sleep(time.Minute)
		write("{max-deletions-per-minute: 1}")
		time.Sleep(time.Second)
		unset(e, 4, 9)
		wantDeletions(t, e, "new limit", 1)
	})
}

func TestControllerThatIsSwitchedOffHasNoStop(t *testing.T) {
	const limit = "max-deletions-per-minute: 3"
	runConfigured(t, withSpare(failureProgram(showing)), "{"+limit+"}", func(t *testing.T, e *Env, write func(string)) {
		createWidgets(e)
		unset(e, 0, 4)
		wantStopped(t, e, "on", true)
		write("{" + limit + `, controllers: ["*", -test-controller]}`)
		time.Sleep(time.Second)
		wantStopped(t, e, "off", false)
		last, _ := Get[*Widget](e, "ns", "a4")
		e.Delete(last)
		write("{" + limit + "}")
		time.Sleep(time.Second)
		wantStopped(t, e, "on, and a Secret is still to be deleted", true)
		write("{" + limit + `, controllers: ["*", -test-controller]}`)
		time.Sleep(time.Second)
		last, _ = Get[*Widget](e, "ns", "a3")
		e.Delete(last)
		e.CollectGarbage()
		write("{" + limit + "}")
		time.Sleep(time.Second)
		wantStopped(t, e, "on, and the objects are gone", false)
	})
}

// TestNewLeaderCountsDeletionsAgain loses the lead while deletions are stopped.
func TestNewLeaderCountsDeletionsAgain(t *testing.T) {
	withBudget(t, func(t *testing.T, e *Env) {
		unset(e, 0, 4)
		wantDeletions(t, e, "first term", 3)
		e.LoseLead()
		e.Lead()
		e.Settle()
		wantDeletions(t, e, "second term", 2)
	})
}

// TestDeletionsOfTheObjectItself: both ways to delete count.
func TestDeletionsOfTheObjectItself(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		return controller.For[*corev1.ConfigMap](c, controller.MayDelete()).Reconcile(func(ctx context.Context,
			r *controller.Request[*corev1.ConfigMap]) error {
			return r.Delete(ctx)
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		for i := range 5 {
			e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("a", i)}})
		}
		e.Settle()
		if n := count(e.Writes(), "delete configmaps "); n != 3 {
			t.Errorf("%d ConfigMaps are deleted, want 3", n)
		}
	}, "--max-deletions-per-minute=3")
}
