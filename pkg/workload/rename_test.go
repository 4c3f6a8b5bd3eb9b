// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestRenameKeepsReplicas(t *testing.T) {
	newest := deployment(named("old-2"), createdAt(2), withReplicas(ptr.To[int32](7)))
	oldest := deployment(named("old-1"), createdAt(1), withReplicas(ptr.To[int32](4)))
	for name, test := range map[string]struct {
		wanted *int32
		want   int32
	}{
		"replicas absent: kept": {nil, 7},
		"replicas set":          {ptr.To[int32](3), 3},
	} {
		t.Run(name, func(t *testing.T) {
			created := Decide(owner(wantReplicas(test.wanted)), View{Former: list(newest, oldest)}).Create
			if created == nil || created.Spec.Replicas == nil || *created.Spec.Replicas != test.want {
				t.Errorf("created %+v, want %d replicas", created, test.want)
			}
		})
	}
}

// decorated sets all fields of a Deployment that the owner leaves to others.
func decorated(d *appsv1.Deployment) {
	withSidecar(d)
	withImage("envoy:v1")(d)
	d.Labels = map[string]string{"team": "blue"}
	d.Annotations = map[string]string{
		"example.com/contact":                              "blue@example.com",
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
		"deployment.kubernetes.io/revision":                "7",
	}
	d.Finalizers = []string{"example.com/hold"}
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	d.Spec.MinReadySeconds, d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds, d.Spec.Paused = 7, ptr.To[int32](3), ptr.To[int32](60), true
	d.Spec.Template.Labels = map[string]string{"app": "nginx", "controller": "a", "tier": "front"}
	d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	d.Spec.Template.Spec.ServiceAccountName = "web"
	d.Spec.Template.Spec.Containers[1].Image = "registry.example.com/app:v7"
	d.Spec.Template.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func TestRenameKeepsUndeclaredFields(t *testing.T) {
	adopted := func(d *appsv1.Deployment) {
		withSelector("app", "adopted")(d)
		d.Spec.Template.Labels = map[string]string{"app": "adopted", "tier": "front"}
	}
	for name, test := range map[string]struct {
		owner  Owner
		former *appsv1.Deployment
		change func(want *appsv1.DeploymentSpec)
	}{
		"image and replicas absent": {owner(wantReplicas(nil)), deployment(decorated), func(*appsv1.DeploymentSpec) {}},
		"image declared": {owner(wantReplicas(nil), wantImage("nginx:1.29")), deployment(decorated), func(want *appsv1.DeploymentSpec) {
			want.Template.Spec.Containers[1].Image = "nginx:1.29"
		}},
		"replicas declared": {owner(wantReplicas(ptr.To[int32](5))), deployment(decorated), func(want *appsv1.DeploymentSpec) {
			want.Replicas = ptr.To[int32](5)
		}},
		"Deployment created by somebody else": {owner(), deployment(decorated, adopted), func(want *appsv1.DeploymentSpec) {
			want.Selector.MatchLabels = map[string]string{"app": "nginx", "controller": "a"}
			want.Template.Labels = map[string]string{"app": "nginx", "controller": "a", "tier": "front"}
		}},
		"without labels": {owner(), deployment(decorated, func(d *appsv1.Deployment) { d.Spec.Template.Labels = nil }), func(want *appsv1.DeploymentSpec) {
			want.Template.Labels = map[string]string{"app": "nginx", "controller": "a"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			named("old")(test.former)
			before := test.former.DeepCopy()
			got := Decide(test.owner, View{Former: list(test.former)}).Create
			if got == nil {
				t.Fatal("nothing to create")
			}
			want := before.DeepCopy()
			test.change(&want.Spec)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
			metadata := test.owner.newDeployment().ObjectMeta
			metadata.Labels, metadata.Annotations = map[string]string{"team": "blue"}, map[string]string{"example.com/contact": "blue@example.com"}
			if diff := cmp.Diff(metadata, got.ObjectMeta); diff != "" {
				t.Errorf("unexpected metadata (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.former); diff != "" {
				t.Errorf("the former Deployment was changed:\n%s", diff)
			}
		})
	}
}

// The cache has only parts of the former Deployment, and may be stale.
func TestRenameReadsFormerDeployment(t *testing.T) {
	former := deployment(named("old"), decorated)
	for name, test := range map[string]struct {
		stored  *appsv1.Deployment
		creates bool
	}{
		"up to date":    {former, true},
		"changed since": {deployment(named("old"), decorated, func(d *appsv1.Deployment) { d.ResourceVersion = "8" }), true},
		"gone":          {nil, false},
		"another":       {deployment(named("old"), decorated, func(d *appsv1.Deployment) { d.UID = "uid-another" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			cached := former.DeepCopy()
			Trim(cached, ourGroups)
			reconciler, client := newTestReconciler(t, list(cached), list(test.stored))
			state, err := reconciler.Reconcile(t.Context(), owner())
			if !test.creates {
				if !apierrors.IsConflict(err) || state.Refused != cached || len(client.Actions()) != 1 {
					t.Errorf("Reconcile() = %+v, %v, want a conflict because of a stale cache", state, err)
				}
				return
			}
			if err != nil || !state.Written {
				t.Fatalf("Reconcile() = %+v, %v, want the Deployment", state, err)
			}
			if diff := cmp.Diff(former.Spec, state.Deployment.Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableFormerDeploymentIsNotGone(t *testing.T) {
	former := deployment(named("old"))
	reconciler, client := newTestReconciler(t, list(former), list(former))
	down := apierrors.NewServiceUnavailable("down")
	refuse(client, "list", down)
	if state, err := reconciler.Reconcile(t.Context(), owner()); !errors.Is(err, down) || state.Refused != nil {
		t.Errorf("Reconcile() = %+v, %v, want %v", state, err, down)
	}
}

func TestRenameCreatesNothingWithoutContainer(t *testing.T) {
	former := deployment(named("old"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "web" })
	decision := Decide(owner(wantImage("nginx:1.29")), View{Former: list(former)})
	if o := decision.Blocker; decision.Create != nil || o == nil || o.Reason != "ContainerMissing" || !strings.Contains(o.Message, `Deployment "old"`) {
		t.Errorf("decision = %+v, want ContainerMissing for the former Deployment", decision)
	}
}

func TestFormerDeploymentIsDeletedWhenSafe(t *testing.T) {
	serving := deployment(named("old"))
	idle := deployment(named("idle"), withStatus(3, 3, 0))
	going := deployment(named("going"), deleted)
	for name, test := range map[string]struct {
		live   *appsv1.Deployment
		former []*appsv1.Deployment
		want   string
	}{
		"none":                       {deployment(), nil, ""},
		"new one available":          {deployment(), list(serving), "old"},
		"new one not yet available":  {deployment(withStatus(3, 3, 1)), list(serving), ""},
		"old one not available":      {deployment(withStatus(3, 3, 0)), list(idle), "idle"},
		"one available and one not":  {deployment(withStatus(3, 3, 0)), list(serving, idle), "idle"},
		"old one in deletion":        {deployment(), list(going), ""},
		"new name taken":             {deployment(withOwner(nil)), list(serving, idle), ""},
		"new one to be scaled first": {deployment(withReplicas(ptr.To[int32](9))), list(idle), ""},
		"no new one yet":             {nil, list(idle), ""},
		"new one in deletion":        {deployment(deleted), list(serving), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if d := Decide(owner(), View{Live: test.live, Former: test.former}).Delete; d != nil {
				got = d.Name
			}
			if got != test.want {
				t.Errorf("deletes %q, want %q", got, test.want)
			}
		})
	}
}

func TestReconcileDeletesWithPreconditions(t *testing.T) {
	former := deployment(named("old"))
	foreign := deployment(named("foreign"), withOwner(ownerReference("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-other")))
	elsewhere := deployment(named("elsewhere"), func(d *appsv1.Deployment) { d.Namespace = "elsewhere" })
	all := list(deployment(), former, foreign, elsewhere)
	reconciler, client := newTestReconciler(t, all, all)
	state, err := reconciler.Reconcile(t.Context(), owner())
	if err != nil || state.Deployment == nil || state.Deployment.Name != "web" {
		t.Fatalf("Reconcile() = %+v, %v, want the Deployment web", state, err)
	}
	if len(client.Actions()) != 2 || client.Actions()[0].GetVerb() != "list" {
		t.Fatalf("actions = %v, want a list of the present Deployment and one delete", client.Actions())
	}
	got, ok := client.Actions()[1].(clienttesting.DeleteActionImpl)
	if !ok || got.Name != "old" || got.Namespace != "default" {
		t.Fatalf("action = %v, want the Deployment old deleted", client.Actions()[1])
	}
	p := got.DeleteOptions.Preconditions
	if p == nil || *p.UID != former.UID || *p.ResourceVersion != former.ResourceVersion {
		t.Errorf("preconditions = %+v, want UID and resourceVersion of the cached Deployment", p)
	}
}

// A former Deployment is reported as long as a finalizer holds it.
func TestReconcileReportsFormerDeploymentUntilGone(t *testing.T) {
	for name, test := range map[string]struct {
		former *appsv1.Deployment
		want   string
	}{
		"being deleted by us": {deployment(named("old")), "old"},
		"held":                {deployment(named("old"), deleted), "old"},
		"gone":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := list(deployment(), test.former)
			reconciler, _ := newTestReconciler(t, all, all)
			state, err := reconciler.Reconcile(t.Context(), owner())
			got := ""
			if state.Former != nil {
				got = state.Former.Name
			}
			if err != nil || got != test.want {
				t.Errorf("Reconcile() = %+v, %v, want the former Deployment %q", state, err, test.want)
			}
		})
	}
}

func TestReconcileReportsMissingFormerDeploymentAsConflict(t *testing.T) {
	reconciler, _ := newTestReconciler(t, list(deployment(), deployment(named("old"))), list(deployment()))
	if _, err := reconciler.Reconcile(t.Context(), owner()); !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want a conflict", err)
	}
}

// If an owner is renamed back and forth, its cache may be stale: the available Deployment
// that it relies on was just deleted, in favor of the one that it would delete now.
func TestReconcileConfirmsReplacementBeforeDeletion(t *testing.T) {
	old := deployment(named("old"))
	idle := deployment(named("idle"), withStatus(3, 3, 0))
	changed := deployment(func(d *appsv1.Deployment) { d.ResourceVersion = "8" })
	recreated := deployment(func(d *appsv1.Deployment) { d.UID = "uid-recreated" })
	for name, test := range map[string]struct {
		former, stored *appsv1.Deployment
		deletes        bool
	}{
		"up to date":                   {old, deployment(), true},
		"gone":                         {old, nil, false},
		"changed":                      {old, changed, false},
		"re-created":                   {old, recreated, false},
		"gone, and none was available": {idle, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			reconciler, client := newTestReconciler(t, list(deployment(), test.former), list(test.stored, test.former))
			_, err := reconciler.Reconcile(t.Context(), owner())
			if apierrors.IsConflict(err) == test.deletes {
				t.Errorf("error = %v, want a conflict: %v", err, !test.deletes)
			}
			_, err = client.AppsV1().Deployments("default").Get(t.Context(), test.former.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != test.deletes {
				t.Errorf("reading the former Deployment: %v, want it deleted: %v", err, test.deletes)
			}
		})
	}
}

func TestTwoReconcilersShareOneIndex(t *testing.T) {
	_, client := newTestReconciler(t, nil, nil)
	informer := newInformer(client)
	for range 2 {
		if _, err := NewReconciler(informer.GetStore(), informer, client.AppsV1(), nil, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := informer.GetIndexer().Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orphan"}}); err != nil {
		t.Error(err)
	}
}
