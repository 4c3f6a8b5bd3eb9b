// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"
)

// A Foo is gone, or is another by now, and its Deployment goes with it, but the
// cache does not know of the Foo yet.
func TestSyncRestsOnceTheCacheIsKnownToBeLate(t *testing.T) {
	foos := samplev1alpha1.Resource("foos")
	for name, refusal := range map[string]error{
		"gone":    apierrors.NewNotFound(foos, key.Name),
		"another": apierrors.NewConflict(foos, key.Name, errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, exampleFoo())
			f.sync()
			f.update(ready)
			f.observe()
			f.sync()
			f.observe()

			refused := true
			f.sample.PrependReactor("patch", "foos", func(clienttesting.Action) (bool, runtime.Object, error) { return refused, nil, refusal })
			f.collect()
			if _, err := f.controller.sync(t.Context(), key); err != nil && !apierrors.IsConflict(err) {
				t.Fatalf("sync() = %v, want nil or a conflict", err)
			}
			f.wantCalls("create deployments", "list foos", "patch foos/status")

			f.collect()
			for range 2 {
				if _, err := f.controller.sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
					t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
				}
			}
			f.wantCalls()

			// With another version it goes on.
			refused = false
			newer := f.foo()
			newer.ResourceVersion += "0"
			if err := f.foos.Update(newer); err != nil {
				t.Fatal(err)
			}
			f.collect()
			f.sync()
			f.wantCalls("create deployments", "list foos", "patch foos/status")
		})
	}
}

// A status that is refused because of what does not matter is written once more, for
// the Foo as it is by now.
func TestSyncTellsAFooThatIsTouchedAllTheTime(t *testing.T) {
	for name, test := range map[string]struct {
		refusals int
		change   func(*samplev1alpha1.Foo)
		told     bool
		calls    []string
	}{
		"touched once": {
			1, func(foo *samplev1alpha1.Foo) { foo.Annotations = map[string]string{"touched": "once"} },
			true, []string{"patch foos/status", "patch foos/status"},
		},
		"touched again": {
			2, func(foo *samplev1alpha1.Foo) { foo.Annotations = map[string]string{"touched": "again"} },
			false, []string{"patch foos/status", "patch foos/status"},
		},
		"wants something else": {
			1, func(foo *samplev1alpha1.Foo) { foo.Generation++ },
			false, []string{"patch foos/status"},
		},
		"somebody else wrote its status": {
			1, func(foo *samplev1alpha1.Foo) { foo.Status.AvailableReplicas = 7 },
			false, []string{"patch foos/status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, exampleFoo())
			f.sync()
			f.update(ready)
			f.observe()
			touched := f.foo()
			touched.ResourceVersion += "0"
			test.change(touched)
			f.sample.ClearActions()
			left := test.refusals
			f.sample.PrependReactor("patch", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
				left--
				if err := f.foos.Update(touched); err != nil { // so it is when the write is refused, or soon after
					t.Error(err)
				}
				return left >= 0, nil, apierrors.NewConflict(samplev1alpha1.Resource("foos"), key.Name, errors.New("changed"))
			})
			if _, err := f.controller.sync(t.Context(), key); test.told && err != nil || !test.told && !apierrors.IsConflict(err) {
				t.Errorf("sync() = %v", err)
			}
			f.wantCalls(test.calls...)
			if test.told {
				f.wantEvents("Normal Synced Foo synced successfully")
			} else {
				f.wantEvents()
			}
		})
	}
}

// A Foo that was served is gone or going, its Deployment has gone with it, and the
// cache knows of the Deployment only.
func TestSyncCreatesNothingForAFooThatTheCacheHasForTooLong(t *testing.T) {
	foos := samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	for name, change := range map[string]func(tracker clienttesting.ObjectTracker, foo *samplev1alpha1.Foo) error{
		"gone": func(tracker clienttesting.ObjectTracker, foo *samplev1alpha1.Foo) error {
			return tracker.Delete(foos, foo.Namespace, foo.Name)
		},
		"going": func(tracker clienttesting.ObjectTracker, foo *samplev1alpha1.Foo) error {
			foo.DeletionTimestamp, foo.Finalizers = &metav1.Time{}, []string{"foregroundDeletion"}
			return tracker.Update(foos, foo, foo.Namespace)
		},
		"another": func(tracker clienttesting.ObjectTracker, foo *samplev1alpha1.Foo) error {
			foo.UID = "uid-another"
			return tracker.Update(foos, foo, foo.Namespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, exampleFoo())
			f.sync()
			f.update(ready)
			f.observe()
			f.sync()
			f.observe()

			foo := f.foo()
			foo.ResourceVersion += "0"
			if err := change(f.sample.Tracker(), foo); err != nil {
				t.Fatal(err)
			}
			f.collect()
			if _, err := f.controller.sync(t.Context(), key); !apierrors.IsConflict(err) {
				t.Errorf("sync() = %v, want a conflict", err)
			}
			f.wantCalls("list foos")
			f.sample.ClearActions()
			if _, err := f.controller.sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
			}
			f.wantCalls()
			f.observe()
			f.sync()
		})
	}
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
	if err := f.deploys.Replace(nil, ""); err != nil {
		f.Fatal(err)
	}
	f.kube.ClearActions()
	f.sample.ClearActions()
}
