// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var exceededQuota = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("exceeded quota"))

func TestReconcileDistinguishesDeniedAndFailedWrites(t *testing.T) {
	resource := appsv1.Resource("deployments")
	// The error of a failed webhook that uses controller-runtime.
	errored := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `admission webhook "w" denied the request: lookup failed`}}
	for name, test := range map[string]struct {
		err    error
		denied bool
		// hint is part of the message of an error that lasts.
		hint string
	}{
		"quota":                 {exceededQuota, true, ""},
		"invalid":               {apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil), true, ""},
		"webhook":               {apierrors.NewBadRequest("admission webhook denied the request"), true, ""},
		"too large":             {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true, ""},
		"webhook with an error": {errored, false, "lookup failed"},
		"webhook not reachable": {apierrors.NewInternalError(errors.New("failed calling webhook")), false, "failed calling webhook"},
		"unavailable":           {apierrors.NewServiceUnavailable("down"), false, "the API server answers 503: down"},
		"throttled":             {apierrors.NewTooManyRequestsError("later"), false, "limits the rate of requests"},
		"storage not reachable": {apierrors.NewServerTimeout(resource, "create", 1), false, "the API server answers 500"},
		"API server timed out":  {apierrors.NewTimeoutError("later", 1), false, "an admission webhook for Deployments may hang"},
		"credentials expired":   {apierrors.NewUnauthorized("who are you?"), false, "the API server answers 401"},
		"no answer":             {fmt.Errorf("Patch https://10.0.0.1/apis: %w", errors.New("connection refused")), false, "no answer from the API server: connection refused"},
		"stale cache":           {apierrors.NewConflict(resource, "web", errors.New("changed")), false, "conflicts with a change by another client"},
		"quota conflict":        {apierrors.NewConflict(corev1.Resource("resourcequotas"), "web", errors.New("changed")), false, "conflicts with a change by another client"},

		"webhook, 401":                      {deniedAs(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), true, ""},
		"webhook, 404":                      {deniedAs(http.StatusNotFound, metav1.StatusReasonNotFound), true, ""},
		"webhook, 405":                      {deniedAs(http.StatusMethodNotAllowed, ""), true, ""},
		"webhook, 409":                      {deniedAs(http.StatusConflict, ""), true, ""},
		"webhook, 409, with a reason":       {deniedAs(http.StatusConflict, metav1.StatusReasonConflict), true, ""},
		"webhook, 409, with another reason": {deniedAs(http.StatusConflict, metav1.StatusReasonAlreadyExists), true, ""},
		"webhook, 429":                      {deniedAs(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), true, ""},
		"webhook, 451":                      {deniedAs(http.StatusUnavailableForLegalReasons, ""), true, ""},
		"webhook, 500":                      {deniedAs(http.StatusInternalServerError, metav1.StatusReasonServerTimeout), false, "the API server answers 500"},
		"webhook, 503":                      {deniedAs(http.StatusServiceUnavailable, ""), false, "the API server answers 503"},
	} {
		for verb, view := range map[string][]*appsv1.Deployment{
			"create": nil,
			"patch":  list(deployment(withReplicas(ptr.To[int32](9)))),
		} {
			t.Run(name+" "+verb, func(t *testing.T) {
				clock := testingclock.NewFakeClock(present)
				reconciler, client := newTestReconciler(t, view, view)
				reconciler.clock = clock
				refuse(client, verb, test.err)
				// A hiccup of some seconds shows nothing, nor do few tries.
				for _, step := range []struct {
					after  time.Duration
					reason string
				}{{0, ""}, {9 * time.Second, ""}, {time.Second, "WriteFailing"}, {49 * time.Second, "WriteFailing"}, {time.Second, "WriteFailed"}} {
					clock.Step(step.after)
					want := step.reason
					if test.denied {
						want = "WriteDenied"
					}
					state, err := reconciler.Reconcile(t.Context(), owner())
					if want == "" {
						if !errors.Is(err, test.err) || state.Blocker != nil {
							t.Fatalf("after %v: %+v, %v, want an error that wraps %v", clock.Since(present), state, err, test.err)
						}
						continue
					}
					if err != nil || state.Blocker == nil || state.Blocker.Reason != want || state.Again <= 0 {
						t.Fatalf("after %v: %+v, %v, want %s and a retry delay", clock.Since(present), state, err, want)
					}
					if message := state.Blocker.Message; test.denied && !strings.Contains(test.err.Error(), message) || !strings.Contains(message, test.hint) {
						t.Errorf("message %q, want the API server's, and %q", message, test.hint)
					}
					if has := state.Deployment != nil; has != (view != nil) {
						t.Errorf("Deployment = %v, want the cached one", state.Deployment)
					}
				}
			})
		}
	}
}

// TestFailingWriteOfBothFieldsBecomesFailed enqueues the owner all the time while the write of both
// fields gets no answer. Fields are tried one by one only after a denial.
func TestFailingWriteOfBothFieldsBecomesFailed(t *testing.T) {
	clock := testingclock.NewFakeClock(present)
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	reconciler, client := newTestReconciler(t, list(drifted), list(drifted))
	reconciler.clock = clock
	refuse(client, "patch", apierrors.NewTimeoutError("later", 1))
	reported := ""
	for clock.Since(present) < 3*time.Minute {
		state, err := reconciler.Reconcile(t.Context(), owner(wantImage("nginx:1.29")))
		want := "WriteFailing"
		if clock.Since(present) >= failedAfter {
			want = "WriteFailed"
		}
		if err == nil {
			reported = state.Blocker.Reason
		}
		if reported != "" && reported != want {
			t.Fatalf("after %v: %s, want %s", clock.Since(present), reported, want)
		}
		clock.Step(time.Second)
	}
	if reported == "" {
		t.Error("nothing was reported")
	}
}

// A permission that is missing is about the controller, not about the object.
func TestMissingPermissionIsNotReportedPerObject(t *testing.T) {
	clock := testingclock.NewFakeClock(present)
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.clock = clock
	missing := apierrors.NewForbidden(appsv1.Resource("deployments"), "", errors.New(
		`User "me" cannot create resource "deployments" in API group "apps" in the namespace "default"`))
	refuse(client, "create", missing)
	for range 10 {
		if state, err := reconciler.Reconcile(t.Context(), owner()); !errors.Is(err, missing) || state.Blocker != nil {
			t.Fatalf("Reconcile() = %+v, %v, want the error", state, err)
		}
		clock.Step(30 * time.Second)
	}
}

func TestFailuresOfAnotherTermAreForgotten(t *testing.T) {
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.clock = testingclock.NewFakeClock(present)
	refuse(client, "create", exceededQuota)
	for range 2 {
		if state, err := reconciler.Reconcile(t.Context(), owner()); err != nil || state.Blocker == nil {
			t.Fatal(state, err)
		}
	}
	reconciler.Begin()
	if _, err := reconciler.Reconcile(t.Context(), owner()); err != nil || len(client.Actions()) != 2 {
		t.Errorf("%v, actions %v, want a second try", err, client.Actions())
	}
}

// deniedAs returns the API server's error for a write that a webhook denied with this code
// and reason. The webhook says that the denial is about the Deployment.
func deniedAs(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "w.example.com" denied the request: not today`,
		Details: &metav1.StatusDetails{Group: "apps", Kind: "deployments", Name: "web"},
	}}
}

// TestQuotaConflictDoesNotMeanStaleCache makes the API server refuse a write because it
// lost a race for the quota. The Deployment is as cached.
func TestQuotaConflictDoesNotMeanStaleCache(t *testing.T) {
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	reconciler, client := newTestReconciler(t, list(drifted), list(drifted))
	refuse(client, "patch", apierrors.NewConflict(corev1.Resource("resourcequotas"), "web", errors.New("the object has been modified")))
	state, err := reconciler.Reconcile(t.Context(), owner())
	if err == nil || state.Refused != nil {
		t.Errorf("Reconcile() = %+v, %v, want an error and no stale Deployment", state, err)
	}
}

func TestDenialHoldsForSameWrite(t *testing.T) {
	later := owner()
	later.Object = &metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "uid-a", Generation: 5}
	another := owner()
	another.Object = &metav1.ObjectMeta{Name: "b", Namespace: "default", UID: "uid-b", Generation: 4}
	for name, test := range map[string]struct {
		then Owner
		want int // writes
	}{
		"the same write": {owner(), 0},
		"new generation": {later, 1},
		"another name":   {owner(wantDeployment("other")), 1},
		"another owner":  {another, 1},
		"another write":  {owner(wantDeployment("former")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			former := deployment(named("former"))
			reconciler, client := newTestReconciler(t, list(former), list(former))
			reconciler.clock = testingclock.NewFakeClock(time.Now())
			refuse(client, "create", exceededQuota)
			if state, err := reconciler.Reconcile(t.Context(), owner()); err != nil || state.Blocker == nil {
				t.Fatalf("Reconcile() = %+v, %v, want a blocker", state, err)
			}
			client.ClearActions()
			_, err := reconciler.Reconcile(t.Context(), test.then)
			got := 0
			for _, action := range client.Actions() {
				if action.GetVerb() != "list" {
					got++
				}
			}
			if err != nil || got != test.want {
				t.Errorf("Reconcile(): %v, actions %v, want %d writes", err, client.Actions(), test.want)
			}
		})
	}
}

func TestDenialsOfDeletedOwnersAreForgotten(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	f := failures{utilcache.NewExpiringWithClock(clock)}
	for i := range 100 {
		p := owner()
		p.Object = &metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}
		f.note(p, write{verb: "create", deployment: p.newDeployment()}, exceededQuota, clock.Now())
		clock.Step(time.Hour)
	}
	if n := f.byWrite.Len(); n != 1 {
		t.Errorf("%d denials remembered, want the last", n)
	}
}
