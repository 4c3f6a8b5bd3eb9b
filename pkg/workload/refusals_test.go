// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"samplecontroller.io/controller-manager/reconcile"
)

// wantStale checks that the sync of the example is postponed without a call.
func (f *fixture) wantStale() {
	f.Helper()
	f.forget()
	if _, err := f.controller.Sync(f.Context(), key); !errors.Is(err, reconcile.ErrStale) {
		f.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
	}
	f.wantCalls()
}

func TestFailedStatusWriteRecordsNoEvent(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, test := range map[string]struct {
			refused error
			quiet   bool
		}{
			"conflict":        {apierrors.NewConflict(kind.resources().GroupResource(), key.Name, errors.New("changed")), false},
			"object gone":     {apierrors.NewNotFound(kind.resources().GroupResource(), key.Name), true},
			"API unavailable": {apierrors.NewServiceUnavailable("down"), false},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.sync()
				f.update(ready)
				f.observe()
				f.refuseStatus(new(true), test.refused)
				_, err := f.controller.Sync(t.Context(), key)
				if test.quiet && err != nil || !test.quiet && !errors.Is(err, test.refused) {
					t.Errorf("sync() error = %v", err)
				}
				if apierrors.IsConflict(test.refused) && !apierrors.IsConflict(err) {
					t.Errorf("sync() error = %v, is not recognized as a conflict", err)
				}
				f.wantEvents()
			})
		}
	})
}

// The object is gone or was re-created, and its Deployment is deleted with it. The cache
// still has the old object.
func TestSyncPausesWhileObjectCacheIsStale(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, refusal := range map[string]error{
			"gone":    apierrors.NewNotFound(kind.resources().GroupResource(), key.Name),
			"another": apierrors.NewConflict(kind.resources().GroupResource(), key.Name, errors.New("changed")),
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.serve()

				refused := true
				f.refuseStatus(&refused, refusal)
				f.collect()
				if _, err := f.controller.Sync(t.Context(), key); err != nil && !apierrors.IsConflict(err) {
					t.Fatalf("sync() = %v, want nil or a conflict", err)
				}
				calls := []string{"list objects", "create deployments", "patch objects/status"}
				if apierrors.IsNotFound(refusal) {
					calls = append(calls, "list objects")
				}
				f.wantCalls(calls...)

				f.collect()
				f.wantStale()
				f.wantStale()

				// It continues once the cache has another version.
				refused = false
				newer := f.object()
				newer.SetResourceVersion(newer.GetResourceVersion() + "0")
				if err := f.objects.Update(newer); err != nil {
					t.Fatal(err)
				}
				f.collect()
				f.sync()
				f.wantCalls("list objects", "create deployments", "patch objects/status")
			})
		}
	})
}

// A status write that conflicts with an irrelevant change is retried once, with the current
// version of the object.
func TestFrequentlyTouchedObjectGetsStatus(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, test := range map[string]struct {
			refusals int
			change   func(object)
			told     bool
			calls    []string
		}{
			"touched once": {
				1, func(o object) { o.SetAnnotations(map[string]string{"touched": "once"}) },
				true, []string{"patch objects/status", "patch objects/status"},
			},
			"touched again": {
				2, func(o object) { o.SetAnnotations(map[string]string{"touched": "again"}) },
				false, []string{"patch objects/status", "patch objects/status"},
			},
			"in deletion, with another finalizer": {
				1, func(o object) { o.SetFinalizers([]string{"example.com/hold", "example.com/other"}) },
				true, []string{"patch objects/status", "patch objects/status"},
			},
			"changed spec": {
				1, func(o object) { o.SetGeneration(o.GetGeneration() + 1) },
				false, []string{"patch objects/status"},
			},
			"changed status": {
				1, func(o object) { *statusOf(o).availableReplicas = 7 },
				false, []string{"patch objects/status"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.sync()
				f.update(ready)
				f.observe()
				touched := f.object()
				touched.SetResourceVersion(touched.GetResourceVersion() + "0")
				test.change(touched)
				left := test.refusals
				f.react(&f.sample.Fake, "patch", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					left--
					if err := f.objects.Update(touched); err != nil { // the cache has it when the write is refused, or soon after
						t.Error(err)
					}
					return left >= 0, nil, apierrors.NewConflict(kind.resources().GroupResource(), key.Name, errors.New("changed"))
				})
				f.forget()
				if _, err := f.controller.Sync(t.Context(), key); test.told && err != nil || !test.told && !apierrors.IsConflict(err) {
					t.Errorf("sync() = %v", err)
				}
				f.wantCalls(test.calls...)
				if test.told {
					f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
				} else {
					f.wantEvents()
				}
			})
		}
	})
}

// Somebody has created the Deployment, and the cache does not have it yet.
func TestSyncPausesUntilExistingDeploymentIsCached(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: deploymentName, ResourceVersion: "7"}}
		if err := f.kube.Tracker().Add(foreign); err != nil {
			t.Fatal(err)
		}
		f.deployments.GetIndexer().Bookmark("6")
		if _, err := f.controller.Sync(t.Context(), key); !apierrors.IsConflict(err) {
			t.Errorf("sync() = %v, want a conflict", err)
		}
		f.wantCalls("create deployments", "list deployments")
		f.wantStale()
		if err := f.deployments.GetIndexer().Add(foreign); err != nil {
			t.Fatal(err)
		}
		f.sync()
		f.wantCalls("patch objects/status")
	})
}

// An object with a Deployment is gone or being deleted, and its Deployment is gone. Only
// the latter is in the cache.
func TestSyncCreatesNothingForDeletedObjectInStaleCache(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, change := range map[string]func(tracker clienttesting.ObjectTracker, o object) error{
			"gone": func(tracker clienttesting.ObjectTracker, o object) error {
				return tracker.Delete(kind.resources(), o.GetNamespace(), o.GetName())
			},
			"going": func(tracker clienttesting.ObjectTracker, o object) error {
				o.SetDeletionTimestamp(&metav1.Time{})
				o.SetFinalizers([]string{"foregroundDeletion"})
				return tracker.Update(kind.resources(), o, o.GetNamespace())
			},
			"another": func(tracker clienttesting.ObjectTracker, o object) error {
				o.SetUID("uid-another")
				return tracker.Update(kind.resources(), o, o.GetNamespace())
			},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.serve()

				o := f.object()
				o.SetResourceVersion(o.GetResourceVersion() + "0")
				if err := change(f.sample.Tracker(), o); err != nil {
					t.Fatal(err)
				}
				f.collect()
				f.objects.Bookmark("1")
				if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
					t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
				}
				f.wantCalls("list objects")
				f.wantStale()
				f.observe()
				f.sync()
			})
		}
	})
}

// A Deployment that has changed since it was cached needs no new decision until the cache
// has the change.
func TestSyncPausesWhileDeploymentCacheIsStale(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.update(func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 })
		f.observe()
		f.refuseDeployments("patch", apierrors.NewConflict(appsv1.Resource("deployments"), deploymentName, errors.New("changed")))
		if _, err := f.controller.Sync(t.Context(), key); !apierrors.IsConflict(err) {
			t.Errorf("sync() = %v, want a conflict", err)
		}
		f.wantCalls("patch deployments")
		f.wantStale()
	})
}

// collect deletes the Deployments as the garbage collector does. Only the cache of
// Deployments has the change.
func (f *fixture) collect() {
	f.Helper()
	deployments, err := f.kube.AppsV1().Deployments("").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range deployments.Items {
		if err := f.kube.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("deployments"), d.Namespace, d.Name); err != nil {
			f.Fatal(err)
		}
	}
	if err := f.deployments.GetIndexer().Replace(nil, ""); err != nil {
		f.Fatal(err)
	}
	f.forget()
}
