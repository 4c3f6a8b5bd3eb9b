// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// TestForbiddenStatusIsAnError checks that the retry is left to the loop.
func TestForbiddenStatusIsAnError(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		denied := true
		f.refuseStatus(&denied, apierrors.NewForbidden(kind.resources().GroupResource(), key.Name, fmt.Errorf(
			`User "me" cannot patch resource "%s/status" in API group %q`, kind.resource, kind.Group)))
		f.wantSync(workload.StatusDelay, "create deployments")
		f.clock.Step(workload.StatusDelay)
		f.observe()
		if _, err := f.controller.Sync(t.Context(), key); !apierrors.IsForbidden(err) {
			t.Fatalf("sync() = %v, want the API server's error", err)
		}
		f.observe()
		f.wantEvents()
		denied = false
		f.sync()
		f.wantCalls("patch objects/status")
	})
}

func TestSkippedWritesAreCounted(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		status := kind.resource + "/status." + kind.Group
		f.wantSync(workload.StatusDelay, "create deployments")
		f.wantSkipped("")
		f.clock.Step(workload.StatusDelay)
		f.wantSync(0, "patch objects/status")
		f.wantSkipped("deployments.apps 1")
		f.observe()
		f.sync()
		f.wantSkipped("deployments.apps 2", status+" 1")
		f.update(ready)
		f.observe()
		f.sync() // writes the status
		f.wantSkipped("deployments.apps 3", status+" 1")
		f.observe()

		// A denied write is not a skipped one.
		f.react(&f.kube.Fake, "patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("exceeded quota"))
		})
		f.drift()
		if _, err := f.controller.Sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		f.wantSkipped("deployments.apps 3", status+" 1")
	})
}

// wantSkipped compares the skipped writes with lines "resource count".
func (f *fixture) wantSkipped(want ...string) {
	f.Helper()
	var text strings.Builder
	for _, line := range want {
		if resource, count, ok := strings.Cut(line, " "); ok {
			fmt.Fprintf(&text, "test_writes_skipped_total{controller=%q,resource=%q} %s\n", f.kind.manager, resource, count)
		}
	}
	if text.Len() > 0 {
		help := "# HELP test_writes_skipped_total [ALPHA] Number of writes skipped because the object was already in the desired state, by controller and resource.\n# TYPE test_writes_skipped_total counter\n"
		if err := testutil.GatherAndCompare(f.registry, strings.NewReader(help+text.String()), "test_writes_skipped_total"); err != nil {
			f.Error(err)
		}
	} else if families, err := f.registry.Gather(); err != nil || len(families) > 0 {
		f.Errorf("skipped writes: %v, %v, want none", families, err)
	}
}
