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

// wantStale checks that the example is put off, and no call is made.
func (f *fixture) wantStale() {
	f.Helper()
	f.forget()
	if _, err := f.controller.Sync(f.Context(), key); !errors.Is(err, reconcile.ErrStale) {
		f.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
	}
	f.wantCalls()
}

func TestSyncReportsAFailedStatusWriteAndNoEvent(t *testing.T) {
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
					t.Errorf("sync() error = %v, is no longer known for a conflict", err)
				}
				f.wantEvents()
			})
		}
	})
}

// An object is gone, or is another by now, and its Deployment goes with it, but the
// cache does not know of the object yet.
func TestSyncRestsOnceTheCacheIsKnownToBeLate(t *testing.T) {
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
				f.wantCalls("list objects", "create deployments", "patch objects/status")

				f.collect()
				f.wantStale()
				f.wantStale()

				// With another version it goes on.
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

// A status that is refused because of what does not matter is written once more, for
// the object as it is by now.
func TestSyncTellsAnObjectThatIsTouchedAllTheTime(t *testing.T) {
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
			"in deletion, and a finalizer more": {
				1, func(o object) { o.SetFinalizers([]string{"example.com/hold", "example.com/other"}) },
				true, []string{"patch objects/status", "patch objects/status"},
			},
			"wants something else": {
				1, func(o object) { o.SetGeneration(o.GetGeneration() + 1) },
				false, []string{"patch objects/status"},
			},
			"somebody else wrote its status": {
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
					if err := f.objects.Update(touched); err != nil { // so it is when the write is refused, or soon after
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

// Somebody has made the Deployment, and the cache does not know of it yet.
func TestSyncRestsOnceADeploymentIsKnownToBeThere(t *testing.T) {
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

// An object that was served is gone or going, its Deployment has gone with it, and
// the cache knows of the Deployment only.
func TestSyncCreatesNothingForAnObjectThatTheCacheHasForTooLong(t *testing.T) {
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

// A Deployment that was changed since the cache saw it is not to be decided on again
// before the cache knows.
func TestSyncRestsOnceADeploymentIsKnownToBeLate(t *testing.T) {
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

// collect takes the Deployments away as the garbage collector does, and the cache
// comes to know of that alone.
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
