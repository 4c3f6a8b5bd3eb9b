// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/managertest"
)

func TestSyncCreatesReportsAndStops(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(example())
		e.pass(time.Second)
		e.wantWrites(createDeployment, patchStatus)
		deployment := e.deployment()
		if !metav1.IsControlledBy(deployment, e.foo()) {
			t.Error("the Deployment is not owned by the object")
		}
		if manager := deployment.ManagedFields; len(manager) != 1 || manager[0].Manager != "foo-controller" {
			t.Errorf("managed fields %v, want those of foo-controller", manager)
		}
		labels := map[string]string{"app": "nginx", "controller": name}
		if diff := cmp.Diff(labels, deployment.Spec.Selector.MatchLabels); diff != "" {
			t.Errorf("unexpected selector (-want +got):\n%s", diff)
		}
		if e.foo().Status.ObservedGeneration != 1 || e.condition("Reconciling").Status != "True" {
			t.Errorf("status = %+v, want generation 1 observed and Reconciling", e.foo().Status)
		}
		e.pass(time.Minute)
		e.wantWrites() // only time has passed
		e.wantEvents()

		e.rollOut(ready)
		e.pass(0)
		e.wantWrites(patchStatus)
		if e.foo().Status.AvailableReplicas != 1 || e.condition("Ready").Status != "True" {
			t.Errorf("status = %+v, want one replica available and Ready", e.foo().Status)
		}
		if since := e.condition("Ready").LastTransitionTime; time.Since(since.Time) >= time.Second {
			t.Errorf("Ready since %v, want %v", since, time.Now())
		}
		e.pass(time.Minute)
		e.wantWrites()
		e.wantEvents(synced)

		// It stays ready while its status changes: no Event.
		e.rollOut(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		e.pass(time.Second)
		e.wantWrites(patchStatus)
		e.wantEvents()
	})
}

func TestSyncCorrectsDrift(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.rollOut(func(d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To[int32](7)
			d.Labels = map[string]string{"owner": "somebody"}
		})
		e.pass(0)
		e.wantWrites(patchDeployment, patchStatus)
		if d := e.deployment(); *d.Spec.Replicas != 1 || d.Labels["owner"] != "somebody" {
			t.Errorf("replicas %d and labels %v, want 1 replica and the label kept", *d.Spec.Replicas, d.Labels)
		}
		e.rollOut(ready)
		e.pass(time.Minute)
		e.wantWrites(patchStatus)
	})
}

func TestSyncKeepsAggregatedPodsAndForeignConditions(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		pods := &workloadv1alpha1.PodSummary{Total: 1}
		other := metav1.Condition{Type: "Other", Status: "True", Reason: "R",
			LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}
		e.change(func(f *samplev1alpha1.Foo) {
			f.Status.Pods = pods
			f.Status.Conditions = append([]metav1.Condition{other}, f.Status.Conditions...)
		})
		e.pass(time.Minute)
		e.wantWrites()
		e.rollOut(available(0))
		e.pass(0)
		e.wantWrites(patchStatus)
		if got := e.foo().Status.Pods; got == nil || got.Total != 1 || e.condition("Other").Reason != "R" {
			t.Errorf("Pods %v and conditions %v, want those of others kept", got, e.foo().Status.Conditions)
		}
	})
}

// TestSyncLeavesForeignDeployment has a Deployment that somebody else made, without a controller or with one of
// another group whose kind and name are those of the example.
func TestSyncLeavesForeignDeployment(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{
		"no controller": nil,
		"another group": {{APIVersion: "example.com/v1", Kind: "Foo", Name: name, UID: "u", Controller: ptr.To(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, e env) {
				foreign := &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Name: deploymentName, Namespace: namespace, OwnerReferences: owners},
					Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](5)},
				}
				e.Create(foreign)
				e.Settle() // the cache has it
				e.Create(example())
				e.pass(0)
				e.wantWrites(patchStatus)
				stalled := e.condition("Stalled")
				if stalled.Status != "True" || stalled.Reason != "DeploymentConflict" {
					t.Fatalf("Stalled = %+v, want True for DeploymentConflict", stalled)
				}
				e.wantEvents("Warning ErrResourceExists " + stalled.Message)
				e.pass(time.Minute)
				e.wantWrites()
				e.wantEvents()

				e.Delete(foreign) // which enqueues the object that names it
				e.pass(time.Second)
				e.wantWrites(createDeployment, patchStatus)
			})
		})
	}
}

// TestSyncOnlyReportsObjectInDeletion holds an object in deletion by a finalizer. Its Deployment still exists.
func TestSyncOnlyReportsObjectInDeletion(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve(func(f *samplev1alpha1.Foo) { f.Finalizers = []string{"example.com/hold"} })
		for _, step := range []struct {
			name      string
			happens   func()
			available int32
			message   string
		}{
			{"deletion", func() { e.Delete(example()) }, 1, `Deployment "example-web" has 1 of 1 replicas available`},
			{"drift", func() {
				e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
				e.rollOut(func(d *appsv1.Deployment) { d.Status.ObservedGeneration, d.Status.AvailableReplicas = d.Generation, 3 })
			}, 3, `Deployment "example-web" has 3 of 1 replicas available, 1 up to date, 1 in all`},
			{"foreground deletion", func() {
				e.rollOut(func(d *appsv1.Deployment) { d.Finalizers = []string{"foregroundDeletion"} })
				e.Delete(e.deployment())
				e.rollOut(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = d.Generation })
			}, 3, "1 in all, and is being deleted"},
			{"no Deployment", func() { e.rollOut(func(d *appsv1.Deployment) { d.Finalizers = nil }) }, 0, "it has no Deployment"},
		} {
			step.happens()
			e.pass(time.Second)
			e.wantWrites(patchStatus)
			reconciling := e.condition("Reconciling")
			if e.condition("Ready").Status != "False" || reconciling.Status != "True" || reconciling.Reason != "Terminating" ||
				!strings.Contains(reconciling.Message, `held by finalizers ["example.com/hold"]; `) || !strings.HasSuffix(reconciling.Message, step.message) {
				t.Errorf("after %s: Reconciling = %+v, want Terminating with %q", step.name, reconciling, step.message)
			}
			if s := e.foo().Status; s.ObservedGeneration != e.foo().Generation || s.AvailableReplicas != step.available {
				t.Errorf("after %s: generation %d and %d available, want %d available", step.name, s.ObservedGeneration, s.AvailableReplicas, step.available)
			}
			e.pass(time.Minute)
			e.wantWrites()
		}
		e.wantEvents()
		e.change(func(f *samplev1alpha1.Foo) { f.Finalizers = nil })
		e.pass(time.Minute)
		e.wantWrites()
	})
}

// TestRenameLeavesFormerDeployment renames an object twice.
func TestRenameLeavesFormerDeployment(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.change(withDeployment("another-web"))
		e.pass(time.Second)
		e.wantWrites("create deployments.apps default/another-web", patchStatus)
		left := `the former Deployment "example-web" still runs; not carried over from "example-web": ` +
			`whatever else the spec does not declare; once you do not need it, run kubectl -n default delete deployment example-web`
		e.wantEvents("Warning FormerDeploymentLeft " + left)
		if message := e.condition("Reconciling").Message; !strings.HasSuffix(message, left) {
			t.Errorf("message %q, want it to end with %q", message, left)
		}
		e.LoseLead()
		e.Lead()
		e.pass(time.Minute)
		e.wantWrites()
		e.wantEvents()

		// Back: both exist, so nothing is created.
		e.change(withDeployment(deploymentName))
		e.pass(time.Minute)
		e.wantWrites(patchStatus)
		e.wantEvents(synced)
		if _, ok := managertest.Get[*appsv1.Deployment](e.Env, namespace, "another-web"); !ok {
			t.Error("the former Deployment was deleted")
		}
	})
}
