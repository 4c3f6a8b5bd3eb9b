// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/reconcile"
)

// newTestReconciler returns a reconciler with the given Deployments in its cache and on its
// API server.
func newTestReconciler(t *testing.T, cached, stored []*appsv1.Deployment) (*Reconciler, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	CountGenerations(client)
	for _, d := range stored {
		if err := client.Tracker().Add(d.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	deployments := newInformer(client)
	reconciler, err := NewReconciler(cache.NewStore(cache.MetaNamespaceKeyFunc), deployments, client.AppsV1(), nil, "test-manager")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cached {
		if err := deployments.GetIndexer().Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return reconciler, client
}

func newInformer(client *fake.Clientset) cache.TypedSharedIndexInformer[*appsv1.Deployment] {
	return informers.NewSharedInformerFactory(client, 0).Apps().V1().Deployments().TypedInformer()
}

// list returns the Deployments that are not nil.
func list(deployments ...*appsv1.Deployment) []*appsv1.Deployment {
	return slices.DeleteFunc(deployments, func(d *appsv1.Deployment) bool { return d == nil })
}

// refuse makes the API server refuse a verb on Deployments.
func refuse(client *fake.Clientset, verb string, err error) {
	client.PrependReactor(verb, "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func TestReconcileCreatesWithFieldManager(t *testing.T) {
	reconciler, client := newTestReconciler(t, nil, nil)
	state, err := reconciler.Reconcile(t.Context(), owner())
	if err != nil || state.Deployment == nil || state.Blocker != nil {
		t.Fatalf("Reconcile() = %+v, %v, want the created Deployment", state, err)
	}
	create, ok := client.Actions()[0].(clienttesting.CreateActionImpl)
	if !ok || len(client.Actions()) != 1 || create.CreateOptions.FieldManager != "test-manager" {
		t.Errorf("actions = %v, want one create by test-manager", client.Actions())
	}
}

func TestReconcileConfirmsOwnerBeforeRiskyWrites(t *testing.T) {
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	former := deployment(named("old"))
	for name, test := range map[string]struct {
		cached []*appsv1.Deployment
		had    bool
		asks   bool
		write  string
	}{
		"none yet":             {nil, false, true, "create"},
		"none, but had one":    {nil, true, true, "create"},
		"none of this name":    {list(former), false, true, "create"},
		"one, as declared":     {list(deployment()), true, false, ""},
		"one, not as declared": {list(drifted), true, true, "patch"},
		"one and a former one": {list(deployment(), former), true, false, ""},
		"a foreign one":        {list(deployment(withOwner(nil))), true, false, ""},
	} {
		for _, confirmed := range []error{nil, reconcile.ErrStale, errors.New("down")} {
			t.Run(fmt.Sprintf("%s, confirmed: %v", name, confirmed), func(t *testing.T) {
				reconciler, client := newTestReconciler(t, test.cached, test.cached)
				asked := 0
				state, err := reconciler.Reconcile(t.Context(), owner(func(p *Owner) {
					p.HadDeployment = test.had
					p.Confirm = func(context.Context) (string, error) { asked++; return "", confirmed }
				}))
				writes, wantAsked, wantErr := []string(nil), 0, error(nil)
				for _, action := range client.Actions() {
					if verb := action.GetVerb(); verb != "list" {
						writes = append(writes, verb)
					}
				}
				if test.asks {
					wantAsked, wantErr = 1, confirmed
				}
				if asked != wantAsked || !errors.Is(err, wantErr) || wantErr == nil && err != nil {
					t.Errorf("Reconcile() = %+v, %v, confirmed %d times; want %v and %d times", state, err, asked, wantErr, wantAsked)
				}
				want := []string(nil)
				if wantErr == nil && test.write != "" {
					want = []string{test.write}
				}
				if diff := cmp.Diff(want, writes); diff != "" {
					t.Errorf("unexpected writes (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestReconcileCorrectsReplicasOnce(t *testing.T) {
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	reconciler, client := newTestReconciler(t, list(drifted), list(drifted))
	state, err := reconciler.Reconcile(t.Context(), owner())
	if err != nil || *state.Deployment.Spec.Replicas != 3 {
		t.Fatalf("Reconcile() = %+v, %v, want 3 replicas", state, err)
	}
	patch, ok := client.Actions()[0].(clienttesting.PatchActionImpl)
	if !ok || len(client.Actions()) != 1 || patch.PatchOptions.FieldManager != "test-manager" {
		t.Errorf("actions = %v, want one patch by test-manager", client.Actions())
	}
	stored, err := client.AppsV1().Deployments(drifted.Namespace).Get(t.Context(), drifted.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, state.Deployment); diff != "" {
		t.Errorf("differs from the stored one (-stored +returned):\n%s", diff)
	}
	if *drifted.Spec.Replicas != 9 {
		t.Error("the cached Deployment was changed")
	}

	reconciler, client = newTestReconciler(t, list(state.Deployment), list(state.Deployment))
	if _, err := reconciler.Reconcile(t.Context(), owner()); err != nil || len(client.Actions()) != 0 {
		t.Errorf("second Reconcile(): %v, actions %v, want none", err, client.Actions())
	}
}

func TestReconcileLeavesForeignDeployment(t *testing.T) {
	foreign := deployment(withOwner(nil), withReplicas(ptr.To[int32](9)))
	reconciler, client := newTestReconciler(t, list(foreign), list(foreign))
	state, err := reconciler.Reconcile(t.Context(), owner())
	if err != nil || state.Deployment != nil || state.Blocker == nil {
		t.Errorf("Reconcile() = %+v, %v, want a blocker and no Deployment", state, err)
	}
	if len(client.Actions()) != 0 {
		t.Errorf("actions = %v, want none", client.Actions())
	}
}

func TestReconcileReportsStaleCacheAsConflict(t *testing.T) {
	gone := apierrors.NewNotFound(appsv1.Resource("deployments"), "web")
	conflict := apierrors.NewConflict(appsv1.Resource("deployments"), "web", errors.New("changed"))
	drifted := deployment(withReplicas(ptr.To[int32](9)))
	for name, test := range map[string]struct {
		cached, stored *appsv1.Deployment
		patchErr       error
		want           State
	}{
		"created since": {nil, drifted, nil, State{Unknown: drifted}},
		"deleted since": {drifted, nil, gone, State{Refused: drifted}},
		"changed since": {drifted, drifted, conflict, State{Refused: drifted}},
	} {
		t.Run(name, func(t *testing.T) {
			reconciler, client := newTestReconciler(t, list(test.cached), list(test.stored))
			if test.patchErr != nil {
				refuse(client, "patch", test.patchErr)
			}
			state, err := reconciler.Reconcile(t.Context(), owner())
			if !apierrors.IsConflict(err) {
				t.Errorf("error = %v, want a conflict", err)
			}
			if diff := cmp.Diff(test.want, state); diff != "" {
				t.Errorf("unexpected state (-want +got):\n%s", diff)
			}
		})
	}
}

// brokenCache fails to return a Deployment.
type brokenCache struct {
	cache.TypedIndexer[*appsv1.Deployment]
	err error
}

func (c brokenCache) GetByKey(string) (any, bool, error) { return nil, false, c.err }

func TestBrokenCacheIsAnError(t *testing.T) {
	broken := errors.New("broken")
	reconciler, client := newTestReconciler(t, nil, nil)
	reconciler.deployments = brokenCache{reconciler.deployments, broken}
	if state, err := reconciler.Reconcile(t.Context(), owner()); !errors.Is(err, broken) || len(client.Actions()) > 0 {
		t.Errorf("Reconcile() = %+v, %v, actions %v; want %v and no action", state, err, client.Actions(), broken)
	}
}

func TestOwnerOwnsByUID(t *testing.T) {
	if !owner().Owns(deployment()) {
		t.Error("a Deployment with our UID is not owned")
	}
	other := owner()
	other.Object = &metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "uid-new"}
	if other.Owns(deployment()) {
		t.Error("a Deployment of an earlier object of the same name is owned")
	}
}
