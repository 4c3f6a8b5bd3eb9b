// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

func TestSyncCreatesThenTellsThenRests(t *testing.T) {
	f := newFixture(t, exampleFoo())
	f.sync()
	f.wantCalls("create deployments", "patch foos/status")
	if !metav1.IsControlledBy(f.deployment(), f.foo()) {
		t.Error("the Deployment is not owned by the Foo")
	}
	if foo := f.foo(); foo.Status.ObservedGeneration != 1 || !meta.IsStatusConditionTrue(foo.Status.Conditions, "Reconciling") {
		t.Errorf("status = %+v, want generation 1 observed and Reconciling", foo.Status)
	}
	f.wantEvents()

	f.observe()
	f.clock.Step(time.Minute)
	f.sync()
	f.wantCalls() // nothing has changed but the time

	f.update(ready)
	f.observe()
	f.sync()
	f.wantCalls("patch foos/status")
	if foo := f.foo(); foo.Status.AvailableReplicas != 1 || !meta.IsStatusConditionTrue(foo.Status.Conditions, "Ready") {
		t.Errorf("status = %+v, want one replica available and Ready", foo.Status)
	}
	f.wantEvents("Normal Synced Foo synced successfully")

	f.observe()
	f.clock.Step(time.Minute)
	f.sync()
	f.wantCalls()
	f.wantEvents()
}

func TestSyncUndoesDrift(t *testing.T) {
	f := newFixture(t, exampleFoo())
	f.sync()
	f.update(func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](7)
		d.Labels = map[string]string{"owner": "somebody"}
		ready(d)
	})
	f.observe()
	f.sync()
	f.wantCalls("patch deployments", "patch foos/status")
	if d := f.deployment(); *d.Spec.Replicas != 1 || d.Labels["owner"] != "somebody" {
		t.Errorf("replicas %d and labels %v, want 1 replica and the label kept", *d.Spec.Replicas, d.Labels)
	}
}

func TestSyncKeepsAggregatedPodsAndForeignConditions(t *testing.T) {
	f := newFixture(t, exampleFoo())
	f.sync()
	f.update(ready)
	f.observe()
	f.sync()
	foo := f.foo()
	foo.Status.Pods = &workloadv1alpha1.PodSummary{Total: 1}
	foo.Status.Conditions = append([]metav1.Condition{{Type: "Other", Status: "True", Reason: "R", LastTransitionTime: metav1.NewTime(f.clock.Now())}}, foo.Status.Conditions...)
	if _, err := f.sample.SamplecontrollerV1alpha1().Foos(key.Namespace).UpdateStatus(t.Context(), foo, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.observe()
	f.sync()
	f.wantCalls()
}

func TestSyncLeavesAForeignDeploymentAlone(t *testing.T) {
	f := newFixture(t, exampleFoo())
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "example-foo", Namespace: key.Namespace}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5)}}
	if err := f.kube.Tracker().Add(foreign); err != nil {
		t.Fatal(err)
	}
	f.observe()
	f.sync()
	f.wantCalls("patch foos/status")
	stalled := meta.FindStatusCondition(f.foo().Status.Conditions, "Stalled")
	if stalled == nil || stalled.Status != "True" || stalled.Reason != "DeploymentConflict" {
		t.Fatalf("Stalled = %+v, want True for DeploymentConflict", stalled)
	}
	f.wantEvents("Warning ErrResourceExists " + stalled.Message)

	f.observe()
	f.sync()
	f.wantCalls()
	f.wantEvents()

	if err := f.kube.AppsV1().Deployments(key.Namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.observe()
	f.sync()
	f.wantCalls("create deployments", "patch foos/status")
}

func TestSyncLeavesAGoneOrGoingFooAlone(t *testing.T) {
	going := exampleFoo()
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{}, []string{"foregroundDeletion"}
	f := newFixture(t, going)
	f.sync()
	f.wantCalls()

	if err := f.foos.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	f.sync()
	f.wantCalls()
}

func TestSyncTellsADeniedCreateAndTriesAgain(t *testing.T) {
	f := newFixture(t, exampleFoo())
	denied := apierrors.NewForbidden(appsv1.Resource("deployments"), "example-foo", errors.New("exceeded quota: none"))
	f.kube.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, denied })
	if again, err := f.controller.sync(t.Context(), key); err != nil || again <= 0 {
		t.Errorf("sync() = %v, %v, want to be called again", again, err)
	}
	stalled := meta.FindStatusCondition(f.foo().Status.Conditions, "Stalled")
	if stalled == nil || stalled.Reason != "WriteDenied" || stalled.Message != denied.Error() {
		t.Fatalf("Stalled = %+v, want WriteDenied with the API server's message", stalled)
	}
	f.wantEvents("Warning WriteDenied " + denied.Error())
}

func TestSyncWritesNoStatusWhenTheDeploymentIsUnknown(t *testing.T) {
	f := newFixture(t, exampleFoo())
	down := apierrors.NewServiceUnavailable("down")
	f.kube.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, down })
	if _, err := f.controller.sync(t.Context(), key); !errors.Is(err, down) {
		t.Errorf("sync() error = %v, want %v", err, down)
	}
	f.wantCalls("create deployments")
}

func TestSyncReportsAFailedStatusWriteAndNoEvent(t *testing.T) {
	for name, test := range map[string]struct {
		refused error
		quiet   bool
	}{
		"conflict":        {apierrors.NewConflict(samplev1alpha1.Resource("foos"), key.Name, errors.New("changed")), false},
		"Foo gone":        {apierrors.NewNotFound(samplev1alpha1.Resource("foos"), key.Name), true},
		"API unavailable": {apierrors.NewServiceUnavailable("down"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, exampleFoo())
			f.sync()
			f.update(ready)
			f.observe()
			f.sample.PrependReactor("patch", "foos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.refused })
			_, err := f.controller.sync(t.Context(), key)
			if test.quiet && err != nil || !test.quiet && !errors.Is(err, test.refused) {
				t.Errorf("sync() error = %v", err)
			}
			if apierrors.IsConflict(test.refused) && !apierrors.IsConflict(err) {
				t.Errorf("sync() error = %v, is no longer known for a conflict", err)
			}
			f.wantEvents()
		})
	}
}

func TestStatusIsAppliedToTheVeryVersionItWasComputedFrom(t *testing.T) {
	f := newFixture(t, exampleFoo())
	f.sync()
	patch, ok := f.sample.Actions()[0].(clienttesting.PatchActionImpl)
	if !ok {
		t.Fatalf("actions = %v", f.sample.Actions())
	}
	var applied samplev1alpha1.Foo
	if err := json.Unmarshal(patch.Patch, &applied); err != nil {
		t.Fatal(err)
	}
	if applied.ResourceVersion != "1" {
		t.Errorf("applied to resourceVersion %q, want 1", applied.ResourceVersion)
	}
	if o := patch.PatchOptions; o.FieldManager != "foo-controller" || !*o.Force {
		t.Errorf("patch options = %+v, want forced by foo-controller", o)
	}
}

func TestADeploymentWakesItsOwnerAndWhoNamesIt(t *testing.T) {
	f := newFixture(t, exampleFoo())
	other := exampleFoo()
	other.Name, other.UID = "waiting", "uid-waiting"
	elsewhere := exampleFoo()
	elsewhere.Namespace = "elsewhere"
	for _, foo := range []*samplev1alpha1.Foo{other, elsewhere} {
		if err := f.foos.Add(foo); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(apiVersion, kind, name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "example-foo",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}}}}
	}
	byName := []cache.ObjectName{key, {Namespace: key.Namespace, Name: "waiting"}}
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       []cache.ObjectName
	}{
		"owned by a Foo":                  {owned("samplecontroller.k8s.io/v1alpha1", "Foo", "owner"), append([]cache.ObjectName{{Namespace: key.Namespace, Name: "owner"}}, byName...)},
		"owned by a Foo of another group": {owned("example.com/v1alpha1", "Foo", "owner"), byName},
		"owned by another kind":           {owned("samplecontroller.k8s.io/v1alpha1", "Bar", "owner"), byName},
		"of nobody, named by nobody":      {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "unrelated"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.controller.foosOf(test.deployment)
			if diff := cmp.Diff(asSet(test.want), asSet(got)); diff != "" {
				t.Errorf("unexpected keys (-want +got):\n%s", diff)
			}
		})
	}
}

func asSet(keys []cache.ObjectName) map[string]bool {
	set := map[string]bool{}
	for _, key := range keys {
		set[key.String()] = true
	}
	return set
}
