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
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// TestDeniedImageHoldsBackNothingElse denies an image. Meanwhile the replicas in the spec change,
// and the Deployment drifts.
func TestDeniedImageHoldsBackNothingElse(t *testing.T) {
	live := deployment(withImage("nginx:1.28"))
	reconciler, client := newTestReconciler(t, list(live), list(live))
	clock := testingclock.NewFakeClock(present)
	reconciler.clock = clock
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		denied := strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "evil")
		return denied, nil, apierrors.NewBadRequest(`admission webhook "w" denied the request: image evil is not allowed`)
	})
	observe := func() *appsv1.Deployment {
		now, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := reconciler.deployments.Update(now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	for generation, replicas := range []int32{3, 5, 8} {
		wish := owner(wantImage("evil"), wantReplicas(&replicas), func(o *Owner) { o.Object.(*metav1.ObjectMeta).Generation = int64(generation) })
		for range 5 {
			state, err := reconciler.Reconcile(t.Context(), wish)
			if err != nil || state.Blocker == nil || state.Blocker.Reason != "WriteDenied" {
				t.Fatalf("%+v, %v, want the denial", state, err)
			}
			observe()
		}
		if got := *observe().Spec.Replicas; got != replicas {
			t.Errorf("%d replicas, want %d: only the image is denied", got, replicas)
		}
	}
	writes := len(client.Actions())
	for range 20 {
		if _, err := reconciler.Reconcile(t.Context(), owner(wantImage("evil"), wantReplicas(ptr.To[int32](8)), func(o *Owner) { o.Object.(*metav1.ObjectMeta).Generation = 2 })); err != nil {
			t.Fatal(err)
		}
	}
	if more := len(client.Actions()) - writes; more > 0 {
		t.Errorf("%d more writes while nothing changes, want none", more)
	}
}

func TestChangedDeploymentLiftsDenial(t *testing.T) {
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	reconciler, client := newTestReconciler(t, list(drifted), list(drifted))
	reconciler.clock = testingclock.NewFakeClock(present)
	refuse(client, "patch", apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil))
	for _, step := range []struct {
		name   string
		change func(*appsv1.Deployment)
		tries  int
	}{
		{"denied", func(*appsv1.Deployment) {}, 1},
		{"its status changed", func(d *appsv1.Deployment) { d.ResourceVersion = "98" }, 0},
		{"its spec changed", func(d *appsv1.Deployment) { d.ResourceVersion, d.Generation = "99", 99 }, 1},
	} {
		now := drifted.DeepCopy()
		step.change(now)
		if err := reconciler.deployments.Update(now); err != nil {
			t.Fatal(err)
		}
		client.ClearActions()
		if _, err := reconciler.Reconcile(t.Context(), owner()); err != nil || len(client.Actions()) != step.tries {
			t.Errorf("%s: %v, %d tries, want %d", step.name, err, len(client.Actions()), step.tries)
		}
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
	if n := reconciler.failures.byWrite.Len(); n != 0 {
		t.Errorf("%d denials remembered, want none", n)
	}
}

// TestDenialThatMayBeLiftedIsRetriedEvery30Seconds denies the write for an hour. Nothing enqueues
// the owner when a quota or a policy changes.
func TestDenialThatMayBeLiftedIsRetriedEvery30Seconds(t *testing.T) {
	policy := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
	policy.ErrStatus.Message = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`
	webhook := deniedAs(http.StatusBadRequest, metav1.StatusReasonBadRequest).(*apierrors.StatusError)
	for name, denial := range map[string]*apierrors.StatusError{"quota": exceededQuota, "policy": policy, "webhook": webhook} {
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
