// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

func TestSyncCreatesReportsAndStops(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.sync()
		f.wantCalls("create deployments", "patch objects/status")
		deployment := f.deployment()
		if !metav1.IsControlledBy(deployment, f.object()) {
			t.Error("the Deployment is not owned by the object")
		}
		labels := map[string]string{"app": kind.app, "controller": key.Name}
		if diff := cmp.Diff(labels, deployment.Spec.Selector.MatchLabels); diff != "" {
			t.Errorf("unexpected selector (-want +got):\n%s", diff)
		}
		if s := statusOf(f.object()); *s.observedGeneration != 1 || !meta.IsStatusConditionTrue(*s.conditions, "Reconciling") {
			t.Errorf("object = %+v, want generation 1 observed and Reconciling", f.object())
		}
		f.wantEvents()

		f.observe()
		f.clock.Step(time.Minute)
		f.sync()
		f.wantCalls() // only time has passed

		f.update(ready)
		f.observe()
		f.sync()
		f.wantCalls("patch objects/status")
		if s := statusOf(f.object()); *s.availableReplicas != 1 || !meta.IsStatusConditionTrue(*s.conditions, "Ready") {
			t.Errorf("object = %+v, want one replica available and Ready", f.object())
		}
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")

		f.observe()
		f.clock.Step(time.Minute)
		f.sync()
		f.wantCalls()
		f.wantEvents()

		// It stays ready while its status changes: no Event.
		f.update(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		f.observe()
		f.sync()
		f.wantCalls("patch objects/status")
		f.wantEvents()
	})
}

func TestConditionsUseControllerClock(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.sync()
		for _, c := range *statusOf(f.object()).conditions {
			if !c.LastTransitionTime.Time.Equal(f.clock.Now()) {
				t.Errorf("%s since %v, want %v", c.Type, c.LastTransitionTime, f.clock.Now())
			}
		}
	})
}

func TestSyncCorrectsDrift(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.sync()
		f.update(func(d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To[int32](7)
			d.Labels = map[string]string{"owner": "somebody"}
			ready(d)
		})
		f.observe()
		f.sync()
		f.wantCalls("patch deployments", "patch objects/status")
		if d := f.deployment(); *d.Spec.Replicas != 1 || d.Labels["owner"] != "somebody" {
			t.Errorf("replicas %d and labels %v, want 1 replica and the label kept", *d.Spec.Replicas, d.Labels)
		}
	})
}

func TestSyncKeepsAggregatedPodsAndForeignConditions(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		o := f.object()
		s := statusOf(o)
		*s.pods = &workloadv1alpha1.PodSummary{Total: 1}
		*s.conditions = append([]metav1.Condition{{Type: "Other", Status: "True", Reason: "R", LastTransitionTime: metav1.NewTime(f.clock.Now())}}, *s.conditions...)
		if err := f.sample.Tracker().Update(kind.resources(), o, key.Namespace); err != nil {
			t.Fatal(err)
		}
		f.observe()
		f.sync()
		f.wantCalls()
	})
}

func TestSyncLeavesForeignDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deploymentName, Namespace: key.Namespace}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5)}}
		if err := f.kube.Tracker().Add(foreign); err != nil {
			t.Fatal(err)
		}
		f.observe()
		f.sync()
		f.wantCalls("patch objects/status")
		stalled := meta.FindStatusCondition(*statusOf(f.object()).conditions, "Stalled")
		if stalled == nil || stalled.Status != "True" || stalled.Reason != "DeploymentConflict" {
			t.Fatalf("Stalled = %+v, want True for DeploymentConflict", stalled)
		}
		f.wantEvents("Warning ErrResourceExists " + stalled.Message)

		f.observe()
		f.sync()
		f.wantCalls()
		f.wantEvents()

		if err := f.kube.AppsV1().Deployments(key.Namespace).Delete(t.Context(), deploymentName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.observe()
		f.sync()
		f.wantCalls("create deployments", "patch objects/status")
	})
}

func TestSyncIgnoresDeletedObjects(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		going := kind.example()
		going.SetDeletionTimestamp(&metav1.Time{})
		going.SetFinalizers([]string{"foregroundDeletion"})
		f := newFixture(t, kind, going)
		f.sync()
		f.wantCalls("patch objects/status")

		f.forget()
		if err := f.objects.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		f.sync()
		f.wantCalls()
	})
}

// A finalizer holds an object in deletion, and its Deployment still exists.
func TestSyncOnlyReportsObjectInDeletion(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
		f.change(func(o object) {
			o.SetGeneration(o.GetGeneration() + 1)
			o.SetDeletionTimestamp(&metav1.Time{Time: f.clock.Now()})
			o.SetFinalizers([]string{"example.com/hold"})
		})
		for _, step := range []struct {
			name      string
			happens   func()
			available int32
			message   string
		}{
			{"deletion", func() {}, 1, `Deployment "example-web" has 1 of 1 replicas available`},
			{"drift", func() {
				f.update(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.AvailableReplicas = ptr.To[int32](7), 3 })
			}, 3, `Deployment "example-web" has 3 of 1 replicas available, 1 up to date, 1 in all`},
			{"foreground deletion", func() {
				f.update(func(d *appsv1.Deployment) {
					d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: f.clock.Now()}, []string{"foregroundDeletion"}
				})
			}, 3, "1 in all, and is being deleted"},
			{"no Deployment", f.collect, 0, "it has no Deployment"},
		} {
			step.happens()
			f.observe()
			f.sync()
			f.wantCalls("patch objects/status")
			s := statusOf(f.object())
			reconciling := meta.FindStatusCondition(*s.conditions, "Reconciling")
			if meta.IsStatusConditionTrue(*s.conditions, "Ready") || reconciling == nil || reconciling.Status != "True" || reconciling.Reason != "Terminating" ||
				!strings.Contains(reconciling.Message, `held by finalizers ["example.com/hold"]; `) || !strings.HasSuffix(reconciling.Message, step.message) {
				t.Errorf("after %s: Reconciling = %+v, want Terminating with %q", step.name, reconciling, step.message)
			}
			if *s.observedGeneration != 2 || *s.availableReplicas != step.available {
				t.Errorf("after %s: generation %d and %d available, want 2 and %d", step.name, *s.observedGeneration, *s.availableReplicas, step.available)
			}
			f.observe()
			f.sync()
			f.wantCalls()
		}
		f.wantEvents()
	})
}

func TestSyncIgnoresUndecodableObjectInDeletion(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		going := kind.placeholder("2")
		going.SetDeletionTimestamp(&metav1.Time{})
		if err := f.objects.Update(going); err != nil {
			t.Fatal(err)
		}
		f.sync()
		f.wantCalls()
		f.wantEvents()
	})
}

func TestSyncReportsAndRetriesDeniedCreate(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		denied := apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("exceeded quota: none"))
		f.refuseDeployments("create", denied)
		if again, err := f.controller.Sync(t.Context(), key); err != nil || again <= 0 {
			t.Errorf("sync() = %v, %v, want a retry", again, err)
		}
		stalled := meta.FindStatusCondition(*statusOf(f.object()).conditions, "Stalled")
		if stalled == nil || stalled.Reason != "WriteDenied" || stalled.Message != denied.Error() {
			t.Fatalf("Stalled = %+v, want WriteDenied with the API server's message", stalled)
		}
		f.wantEvents("Warning WriteDenied " + denied.Error())
	})
}

func TestSyncWritesNoStatusForUnknownDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		down := apierrors.NewServiceUnavailable("down")
		f.refuseDeployments("create", down)
		if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, down) {
			t.Errorf("sync() error = %v, want %v", err, down)
		}
		f.wantCalls("create deployments")
	})
}

func TestStatusApplyCarriesResourceVersion(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.sync()
		patch, ok := f.sample.Actions()[0].(clienttesting.PatchActionImpl)
		if !ok {
			t.Fatalf("actions = %v", f.sample.Actions())
		}
		var applied metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.Patch, &applied); err != nil {
			t.Fatal(err)
		}
		if applied.ResourceVersion != "1" || applied.GroupVersionKind() != kind.GroupVersionKind {
			t.Errorf("applied to resourceVersion %q of %s, want 1 of %s", applied.ResourceVersion, applied.GroupVersionKind(), kind.GroupVersionKind)
		}
		if o := patch.PatchOptions; o.FieldManager != kind.manager || !*o.Force {
			t.Errorf("patch options = %+v, want forced by %s", o, kind.manager)
		}
		if name := f.controller.Name(); name != kind.manager {
			t.Errorf("the controller's name is %q, want %q like its field manager", name, kind.manager)
		}
	})
}

// TestRenameLeavesFormerDeployment renames an object twice.
func TestRenameLeavesFormerDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
		f.change(want("another-web", 1))
		f.observe()
		f.sync()
		f.wantCalls("list objects", "create deployments", "patch objects/status")
		left := `the former Deployment "example-web" still runs; not carried over from "example-web": ` +
			`whatever else the spec does not declare; once you do not need it, run kubectl -n default delete deployment example-web`
		f.wantEvents("Warning FormerDeploymentLeft " + left)
		f.observe()
		f.sync()
		f.wantCalls()
		if message := (*statusOf(f.object()).conditions)[0].Message; !strings.HasSuffix(message, left) {
			t.Errorf("message %q, want it to end with %q", message, left)
		}

		// Back: both exist, so nothing is created.
		f.change(want(deploymentName, 1))
		f.observe()
		f.sync()
		f.wantCalls("patch objects/status")
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
	})
}
