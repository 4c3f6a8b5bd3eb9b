// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
)

// missing is how the API server denies a write for want of a permission.
func missing(verb string, resource schema.GroupResource) *apierrors.StatusError {
	whole := resource
	whole.Resource, _, _ = strings.Cut(resource.Resource, "/")
	return apierrors.NewForbidden(whole, "", fmt.Errorf("User \"me\" cannot %s resource %q in API group %q in the namespace %q", verb, resource.Resource, resource.Group, key.Namespace))
}

// TestAStatusThatMayNotBeWrittenIsTriedAgainSoon has that last for long: a backoff would
// outlast it.
func TestAStatusThatMayNotBeWrittenIsTriedAgainSoon(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		denied := true
		f.refuseStatus(&denied, missing("patch", schema.GroupResource{Group: kind.Group, Resource: kind.resource + "/status"}))
		for range 20 {
			if again, err := f.controller.Sync(t.Context(), key); err != nil || again <= 0 || again > 10*time.Second {
				t.Fatalf("sync() = %v, %v, want it again within 10 s", again, err)
			}
			f.observe()
		}
		f.wantEvents()
		denied = false
		f.sync()
		f.wantCalls("patch objects/status")
	})
}

// TestWhatMayNotBeWrittenIsNotAskedFor has the transport know that a Deployment cannot be
// created for an object that had one, of which the API server would be asked first.
func TestWhatMayNotBeWrittenIsNotAskedFor(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.collect()
		f.deny(http.MethodPost, "create", appsv1.Resource("deployments"))
		if again, err := f.controller.Sync(t.Context(), key); err != nil || again <= 0 || again > 10*time.Second {
			t.Fatalf("sync() = %v, %v, want it again within 10 s", again, err)
		}
		f.wantCalls("patch objects/status")
		if got := meta.FindStatusCondition(*statusOf(f.object()).conditions, "Stalled"); got.Reason != "WriteDenied" || !strings.Contains(got.Message, `User "me" cannot create resource "deployments"`) {
			t.Errorf("Stalled = %+v, want WriteDenied with the API server's message", got)
		}
	})
}

// deny has the transport see the API server deny a write of the example's namespace.
func (f *fixture) deny(method, verb string, resource schema.GroupResource) {
	f.Helper()
	denied := roundTripper(func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusForbidden)
		status := missing(verb, resource).ErrStatus
		status.APIVersion, status.Kind = "v1", "Status"
		_ = json.NewEncoder(w).Encode(status)
		return w.Result(), nil
	})
	request, err := http.NewRequest(method, "https://api.test/apis/apps/v1/namespaces/"+key.Namespace+"/deployments", nil)
	if err != nil {
		f.Fatal(err)
	}
	response, err := f.writes.Wrap(denied).RoundTrip(request)
	if err != nil {
		f.Fatal(err)
	}
	response.Body.Close()
	if len(f.writes.Denied()) != 1 {
		f.Fatal("the transport knows of no denial")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestWhatNeedNotBeWrittenIsCounted(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		status := kind.resource + "/status." + kind.Group
		f.sync() // creates the Deployment and writes the status
		f.wantSkipped("")
		f.observe()
		f.sync()
		f.wantSkipped("deployments.apps 1", status+" 1")
		f.update(ready)
		f.observe()
		f.sync() // writes the status
		f.wantSkipped("deployments.apps 2", status+" 1")
		f.observe()

		// What cannot be written is not equal.
		f.react(&f.kube.Fake, "patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("exceeded quota"))
		})
		f.drift()
		if _, err := f.controller.Sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		f.wantSkipped("deployments.apps 2", status+" 1")
	})
}

// wantSkipped compares what need not be written, in lines "resource count".
func (f *fixture) wantSkipped(want ...string) {
	f.Helper()
	var text strings.Builder
	for _, line := range want {
		if resource, count, ok := strings.Cut(line, " "); ok {
			fmt.Fprintf(&text, "test_writes_skipped_total{controller=%q,resource=%q} %s\n", f.kind.manager, resource, count)
		}
	}
	if text.Len() > 0 {
		help := "# HELP test_writes_skipped_total [ALPHA] Number of writes that were not needed, because all was as it should be, by controller and resource.\n# TYPE test_writes_skipped_total counter\n"
		if err := testutil.GatherAndCompare(f.registry, strings.NewReader(help+text.String()), "test_writes_skipped_total"); err != nil {
			f.Error(err)
		}
	} else if families, err := f.registry.Gather(); err != nil || len(families) > 0 {
		f.Errorf("skipped were %v, %v, want nothing", families, err)
	}
}
