// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"
)

// newTerm ends the term and begins the next one.
func (f *fixture) newTerm() {
	f.Helper()
	ended, cancel := context.WithCancel(f.Context())
	cancel()
	if err := f.controller.Run(ended); err != nil {
		f.Fatal(err)
	}
}

// drift scales the Deployment behind the controller's back. The caches have the change.
func (f *fixture) drift() {
	f.Helper()
	f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	f.observe()
}

// change changes the example. The cache does not have the change yet.
func (f *fixture) change(change func(object)) {
	f.Helper()
	f.objects.Bookmark(f.object().GetResourceVersion())
	o := f.object().DeepCopyObject().(object)
	o.SetResourceVersion(o.GetResourceVersion() + "0")
	change(o)
	if err := f.sample.Tracker().Update(f.kind.resources(), o, key.Namespace); err != nil {
		f.Fatal(err)
	}
}

// listAt sets the resourceVersion of lists of objects.
func (f *fixture) listAt(version string) {
	f.react(&f.sample.Fake, "list", f.kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		list, err := f.sample.Tracker().List(f.kind.resources(), f.kind.GroupVersionKind, "")
		if err == nil {
			err = meta.NewAccessor().SetResourceVersion(list, version)
		}
		return true, list, err
	})
}

// want returns a change of the example's spec.
func want(deployment string, replicas int32) func(object) {
	return func(o object) {
		o.SetGeneration(o.GetGeneration() + 1)
		switch o := o.(type) {
		case *samplev1alpha1.Foo:
			o.Spec.DeploymentName, o.Spec.Replicas = deployment, &replicas
		case *icecreamv1alpha1.Icecream:
			o.Spec.DeploymentName, o.Spec.Replicas = deployment, &replicas
		}
	}
}

func TestFirstCorrectionOfTermReadsObject(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		for _, status := range [][]string{{"patch objects/status"}, nil} { // which first reports that not all replicas are available
			f.newTerm()
			f.clock.Step(2 * time.Hour) // so that nobody contests the replicas
			f.drift()
			f.sync()
			f.wantCalls(append([]string{"list objects", "patch deployments"}, status...)...)
			f.drift()
			f.sync()
			f.wantCalls("patch deployments")
		}
	})
}

func TestCaughtUpCacheNeedsNoReads(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for version, calls := range map[string][]string{
			"99":  {"list objects", "patch deployments"},
			"100": {"patch deployments"},
		} {
			t.Run(version, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.serve()
				f.listAt("100")
				f.newTerm()
				f.drift()
				f.sync()
				f.wantCalls("list objects", "patch deployments", "patch objects/status")

				f.change(func(o object) { o.SetUID("uid-another") })
				f.update(func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-another" })
				f.drift()
				f.objects.Bookmark(version)
				f.sync()
				f.wantCalls(calls...)

				f.newTerm()
				f.drift()
				f.objects.Bookmark(version)
				f.sync()
				f.wantCalls("list objects", "patch deployments")
			})
		}
	})
}

// The event of the first status write shows that the cache has caught up, and ends the reads.
func TestStatusIsNotDelayedUntilCacheHasCaughtUp(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.listAt("100")
		f.newTerm()
		f.wantSync(0, "list objects", "create deployments", "patch objects/status")

		f.update(available(0))
		f.observe()
		f.objects.Bookmark("100")
		if requeueAfter, err := f.controller.Sync(f.Context(), key); requeueAfter != time.Second || err != nil {
			t.Errorf("sync() = %v, %v, want the status to be delayed by a second", requeueAfter, err)
		}
		f.wantCalls()
	})
}

func TestTermWithoutDifferencesReadsNothing(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.newTerm()
		f.sync()
		f.wantCalls()
		f.update(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		f.observe()
		f.sync()
		f.wantCalls("patch objects/status")
	})
}

// A former leader or somebody else has scaled the Deployment, and only the cache of
// Deployments has the change.
func TestOutdatedObjectGetsNoCorrection(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, change := range map[string]func(f *fixture){
			"scaled": func(f *fixture) { f.change(want(deploymentName, 7)) },
			"going": func(f *fixture) {
				f.change(func(o object) {
					o.SetDeletionTimestamp(&metav1.Time{})
					o.SetFinalizers([]string{"foregroundDeletion"})
				})
			},
			"another": func(f *fixture) { f.change(func(o object) { o.SetUID("uid-another") }) },
			"gone": func(f *fixture) {
				if err := f.sample.Tracker().Delete(kind.resources(), key.Namespace, key.Name); err != nil {
					f.Fatal(err)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.serve()
				f.newTerm()
				f.drift()
				change(f)
				if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
					t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
				}
				f.wantCalls("list objects")
				f.wantStale()
				f.wantStale()
				if got := *f.deployment().Spec.Replicas; got != 7 {
					t.Errorf("Deployment has spec.replicas %d, want 7 as before", got)
				}
			})
		}
	})
}

func TestObjectIsConfirmedOnceCacheHasCaughtUp(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.newTerm()
		f.drift()
		f.change(want(deploymentName, 3))
		if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
		}
		f.wantStale()
		f.observe()
		f.sync()
		f.wantCalls("list objects", "patch deployments", "patch objects/status")
		if got := *f.deployment().Spec.Replicas; got != 3 {
			t.Errorf("Deployment has spec.replicas %d, want 3", got)
		}
	})
}

// The resourceVersion of an object also changes with its status and its annotations.
func TestTouchedObjectIsConfirmed(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.newTerm()
		f.drift()
		f.change(func(o object) { o.SetAnnotations(map[string]string{"touched": "true"}) })
		f.sync()
		f.wantCalls("list objects", "patch deployments", "patch objects/status")
	})
}

// A former leader has deleted the Deployment that the object named, and only the cache of
// Deployments has the deletion.
func TestOutdatedObjectGetsNoDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.newTerm()
		f.collect()
		f.change(want("another-web", 1))
		if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
		}
		f.wantCalls("list objects")
		f.wantStale()
	})
}

func TestFailedConfirmationIsRetried(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		for name, failure := range map[string]error{
			"down":      apierrors.NewServiceUnavailable("down"),
			"forbidden": apierrors.NewForbidden(kind.resources().GroupResource(), key.Name, errors.New("no")), // not the denial of a write
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, kind, kind.example())
				f.serve()
				f.newTerm()
				f.drift()
				fails := true
				f.react(&f.sample.Fake, "list", kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return fails, nil, failure })
				for range 2 {
					f.forget()
					if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, failure) {
						t.Errorf("sync() = %v, want %v", err, failure)
					}
					f.wantCalls("list objects")
				}
				fails = false
				f.forget()
				f.sync()
				f.wantCalls("list objects", "patch deployments", "patch objects/status")
			})
		}
	})
}

func TestDeletedObjectIsForgotten(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.newTerm()
		f.drift()
		f.sync()
		if got := f.controller.Confirmed(); got != 1 {
			t.Fatalf("%d confirmed objects, want 1", got)
		}

		// An object of the same name may be created before the next sync.
		f.change(func(o object) { o.SetUID("uid-another") })
		f.update(func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-another" })
		f.drift()
		f.sync()
		f.wantCalls("list objects", "patch deployments")

		if err := f.objects.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		f.sync()
		if got := f.controller.Confirmed(); got != 0 {
			t.Errorf("%d confirmed objects, want none", got)
		}
	})
}
