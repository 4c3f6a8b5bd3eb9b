// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"testing"

	"samplecontroller.io/controller-manager/reconcile"
)

// The object was renamed, and a former leader has already acted on that. The caches have
// neither change, and no status with a Deployment.
func TestFirstCreateOfTermReadsObject(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.newTerm()
		f.change(want("another-web", 1))
		if _, err := f.controller.Sync(t.Context(), key); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("sync() = %v, want %v", err, reconcile.ErrStale)
		}
		f.wantCalls("list objects")
		f.wantStale()

		f.observe()
		f.sync()
		f.wantCalls("list objects", "create deployments", "patch objects/status")
	})
}

// Once the cache contains everything from before the term, a new object costs no extra
// request.
func TestNewObjectIsNotRead(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.listAt("100")
		f.newTerm()
		f.sync()
		f.wantCalls("list objects", "create deployments", "patch objects/status")

		f.change(func(o object) { o.SetUID("uid-another"); *statusOf(o).selector = "" })
		f.collect()
		f.observe()
		f.objects.Bookmark("101")
		f.sync()
		f.wantCalls("create deployments", "patch objects/status")
	})
}
