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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var exceededQuota = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("exceeded quota"))

func TestReconcileDistinguishesDeniedAndFailedWrites(t *testing.T) {
	resource := appsv1.Resource("deployments")
	// The error of a failed webhook that uses controller-runtime.
	errored := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `admission webhook "w" denied the request: lookup failed`}}
	for name, test := range map[string]struct {
		err error
		// after is the number of consecutive errors after which the write counts as denied,
		// 0 for never.
		after int
	}{
		"quota":                 {exceededQuota, 1},
		"invalid":               {apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil), 1},
		"webhook":               {apierrors.NewBadRequest("admission webhook denied the request"), 1},
		"too large":             {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), 1},
		"webhook with an error": {errored, 2},
		"webhook not reachable": {apierrors.NewInternalError(errors.New("failed calling webhook")), 2},
		"unavailable":           {apierrors.NewServiceUnavailable("down"), 0},
		"throttled":             {apierrors.NewTooManyRequestsError("later"), 0},
		"storage not reachable": {apierrors.NewServerTimeout(resource, "create", 1), 0},
		"handler timed out":     {apierrors.NewTimeoutError("later", 1), 0},
		"credentials expired":   {apierrors.NewUnauthorized("who are you?"), 0},
		"no answer":             {errors.New("connection refused"), 0},
		"stale cache":           {apierrors.NewConflict(resource, "web", errors.New("changed")), 0},
		"quota conflict":        {apierrors.NewConflict(corev1.Resource("resourcequotas"), "web", errors.New("changed")), 0},

		"webhook, 401":                      {deniedAs(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), 1},
		"webhook, 404":                      {deniedAs(http.StatusNotFound, metav1.StatusReasonNotFound), 1},
		"webhook, 405":                      {deniedAs(http.StatusMethodNotAllowed, ""), 1},
		"webhook, 409":                      {deniedAs(http.StatusConflict, ""), 1},
		"webhook, 409, with a reason":       {deniedAs(http.StatusConflict, metav1.StatusReasonConflict), 1},
		"webhook, 409, with another reason": {deniedAs(http.StatusConflict, metav1.StatusReasonAlreadyExists), 1},
		"webhook, 429":                      {deniedAs(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), 1},
		"webhook, 451":                      {deniedAs(http.StatusUnavailableForLegalReasons, ""), 1},
		"webhook, 500":                      {deniedAs(http.StatusInternalServerError, metav1.StatusReasonServerTimeout), 2},
		"webhook, 503":                      {deniedAs(http.StatusServiceUnavailable, ""), 2},
	} {
		served := deployment()
		for verb, view := range map[string][]*appsv1.Deployment{
			"create": nil,
			"patch":  list(deployment(withReplicas(ptr.To[int32](9)))),
			"delete": list(served, deployment(named("former"))),
		} {
			t.Run(name+" "+verb, func(t *testing.T) {
				reconciler, client := newTestReconciler(t, view, view)
				refuse(client, verb, test.err)
				for try := 1; try <= 3; try++ {
					reconciler.clock = testingclock.NewFakeClock(time.Now().Add(time.Duration(try) * time.Minute))
					state, err := reconciler.Reconcile(t.Context(), owner())
					if told := test.after > 0 && try >= test.after; !told {
						if !errors.Is(err, test.err) || state.Blocker != nil {
							t.Fatalf("try %d: %+v, %v, want an error that wraps %v", try, state, err, test.err)
						}
						continue
					}
					if err != nil || state.Blocker == nil || state.Again <= 0 {
						t.Fatalf("try %d: %+v, %v, want a blocker and a retry delay", try, state, err)
					}
					if o := state.Blocker; o.Reason != "WriteDenied" || !strings.Contains(test.err.Error(), o.Message) {
						t.Errorf("blocker = %+v, want WriteDenied with the API server's message", o)
					}
					if has := state.Deployment != nil; has != (view != nil) {
						t.Errorf("Deployment = %v, want the cached one", state.Deployment)
					}
				}
			})
		}
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

// TestDeniedWriteBacksOff enqueues the owner all the time. The API server words each denial
// differently.
func TestDeniedWriteBacksOff(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.clock = clock
	var tries []time.Duration
	deny := true
	client.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries = append(tries, clock.Since(start))
		return deny, nil, apierrors.NewBadRequest(fmt.Sprintf("refusal %d", len(tries)))
	})
	for clock.Since(start) < 20*time.Minute {
		state, err := reconciler.Reconcile(t.Context(), owner())
		if err != nil || state.Blocker == nil || !strings.Contains(state.Blocker.Message, fmt.Sprintf("refusal %d", len(tries))) {
			t.Fatalf("Reconcile() = %+v, %v, want the last denial", state, err)
		}
		if next := clock.Since(start) + state.Again; state.Again <= 0 || next-tries[len(tries)-1] > lastRetry {
			t.Fatalf("again after %v, tried at %v", state.Again, tries)
		}
		clock.Step(100 * time.Millisecond)
	}
	if len(tries) != 14 {
		t.Errorf("tried at %v, want 11 times at growing intervals, then every 5m", tries)
	}
	for i, want := range []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond, 1400 * time.Millisecond, 3 * time.Second} {
		if tries[i] != want {
			t.Errorf("tried at %v, want the %dth time at %v", tries, i+1, want)
		}
	}

	// Once the denial is lifted, the next try succeeds and nothing is remembered.
	deny = false
	clock.Step(lastRetry)
	if state, err := reconciler.Reconcile(t.Context(), owner()); err != nil || !state.Written || state.Blocker != nil {
		t.Errorf("Reconcile() = %+v, %v, want the Deployment", state, err)
	}
	if n := reconciler.denials.byOwner.Len(); n != 0 {
		t.Errorf("%d denials remembered, want none", n)
	}
}

// TestForbiddenWriteIsRetriedEvery30Seconds denies the write for an hour: a permission is
// missing, or a quota is exceeded.
func TestForbiddenWriteIsRetriedEvery30Seconds(t *testing.T) {
	for name, denial := range map[string]*apierrors.StatusError{
		"permission": apierrors.NewForbidden(appsv1.Resource("deployments"), "", errors.New(`User "me" cannot create resource "deployments" in API group "apps" in the namespace "default"`)),
		"quota":      exceededQuota,
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(time.Now())
			reconciler, client := newTestReconciler(t, nil, nil)
			reconciler.clock = clock
			refuse(client, "create", denial)
			for end := clock.Now().Add(time.Hour); clock.Now().Before(end); {
				state, err := reconciler.Reconcile(t.Context(), owner())
				if err != nil || state.Blocker == nil || state.Blocker.Reason != "WriteDenied" || state.Blocker.Message != denial.ErrStatus.Message {
					t.Fatalf("Reconcile() = %+v, %v, want the API server's message", state, err)
				}
				if state.Again <= 0 || state.Again > 30*time.Second {
					t.Fatalf("again after %v, want 30 s at most", state.Again)
				}
				clock.Step(state.Again)
			}
			if got := len(client.Actions()); got < 120 || got > 130 {
				t.Errorf("tried %d times in an hour, want one try per 30 s", got)
			}
		})
	}
}

func TestTerminatingNamespaceGetsNoDeployment(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.clock = clock
	going := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("because it is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	refuse(client, "create", going)
	for range 10 {
		state, err := reconciler.Reconcile(t.Context(), owner())
		if err != nil || state.Blocker == nil || state.Blocker.Reason != "WaitingForDeletion" || ConditionFor(state.Blocker.Reason) != "Reconciling" {
			t.Fatalf("Reconcile() = %+v, %v, want it to wait for the deletion", state, err)
		}
		clock.Step(lastRetry / 10)
	}
	if got := len(client.Actions()); got != 1 {
		t.Errorf("%d writes in %v, want one", got, lastRetry)
	}
}

// TestUndiscoveredKindIsRetriedEverySecond makes the API server's admission not know the
// kind of the owner yet, as after the installation of its CRD.
func TestUndiscoveredKindIsRetriedEverySecond(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.clock = clock
	refuse(client, "create", apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New(
		`cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion samplecontroller.k8s.io/v1alpha1 Kind Foo: no matches for kind "Foo" in version "samplecontroller.k8s.io/v1alpha1"`)))
	begin := clock.Now()
	for clock.Since(begin) < 30*time.Second {
		state, err := reconciler.Reconcile(t.Context(), owner())
		if err != nil || state.Blocker == nil || state.Blocker.Reason != "Progressing" || ConditionFor(state.Blocker.Reason) != "Reconciling" || state.Again > time.Second {
			t.Fatalf("Reconcile() = %+v, %v, want Reconciling and a retry within a second", state, err)
		}
		clock.Step(state.Again)
	}
	if got := len(client.Actions()); got > 35 {
		t.Errorf("%d writes in 30s, want about one a second", got)
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
		"another write":  {owner(wantReplicas(ptr.To[int32](9)), wantDeployment("drifted")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			drifted := deployment(named("drifted"), withReplicas(ptr.To[int32](9)))
			reconciler, client := newTestReconciler(t, list(drifted), list(drifted))
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
	d := denials{utilcache.NewExpiringWithClock(clock)}
	for i := range 100 {
		p := owner()
		p.Object = &metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}
		d.note(p, write{"create", "web"}, exceededQuota, clock.Now())
		clock.Step(time.Hour)
	}
	if n := d.byOwner.Len(); n != 1 {
		t.Errorf("%d denials remembered, want the last", n)
	}
}
