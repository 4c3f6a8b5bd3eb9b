// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"samplecontroller.io/controller-manager/reconcile"
)

// expect compares the non-zero series of both metrics with lines "verb resource result
// count" and "skipped resource count".
func expect(t *testing.T, registry metrics.KubeRegistry, want ...string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["controller"] != "a-controller" {
				t.Errorf("%s has a series of controller %q", family.GetName(), labels["controller"])
			}
			line := fmt.Sprintf("%s %s %s %v", labels["verb"], labels["resource"], labels["result"], metric.GetCounter().GetValue())
			if family.GetName() == "test_writes_skipped_total" {
				line = fmt.Sprintf("skipped %s %v", labels["resource"], metric.GetCounter().GetValue())
			}
			if metric.GetCounter().GetValue() > 0 {
				got = append(got, line)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected counts (-want +got):\n%s", diff)
	}
}

// TestWritesAreCountedByResult uses two clients with one transport.
func TestWritesAreCountedByResult(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	f := newFixture(t, NewMetrics("test", registry.MustRegister))
	status := f.transport.Wrap(f.api)
	do := func(change func(*api)) {
		t.Helper()
		f.api.set(func(a *api) { a.error, a.broken = nil, nil })
		f.api.set(change)
		_ = f.create(t.Context(), "x")
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://api.test/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos/a/status", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if response, err := status.RoundTrip(request); err == nil {
			response.Body.Close()
		}
	}
	do(func(*api) {})
	do(func(*api) {})
	do(func(a *api) { a.error = apierrors.NewConflict(deployments, "web", errors.New("changed")) })
	do(func(a *api) { a.error = apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")) })
	do(func(a *api) { a.error = apierrors.NewNotFound(deployments, "web") })
	do(func(a *api) { a.error = apierrors.NewInternalError(errors.New("etcd")) })
	do(func(a *api) { a.broken = errors.New("connection refused") })
	do(func(a *api) { a.broken = fmt.Errorf("the gate: %w", errRefused) })
	f.api.deny(everything)
	do(func(*api) {})
	f.transport.Skip(deployments.String())
	var want []string
	for _, write := range []string{"create deployments.apps", "patch foos/status.samplecontroller.k8s.io"} {
		want = append(want, write+" written 2", write+" conflict 1", write+" denied 2", write+" failed 3", write+" refused 1")
	}
	expect(t, registry, append(want, "skipped deployments.apps 1")...)
}

func TestPrepareCreatesSeriesAtZero(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.MustRegister)
	m.Prepare("a-controller", Write{"create", "deployments.apps"}, Write{"patch", "deployments.apps"})
	var want strings.Builder
	want.WriteString("# HELP test_writes_noop_total [ALPHA] Number of patches that the API server accepted but that changed nothing, by controller and resource. They are part of writes_total. The log names the fields.\n" +
		"# TYPE test_writes_noop_total counter\n" +
		"test_writes_noop_total{controller=\"a-controller\",resource=\"deployments.apps\"} 0\n" +
		"# HELP test_writes_skipped_total [ALPHA] Number of writes skipped because the object was already in the desired state, by controller and resource.\n" +
		"# TYPE test_writes_skipped_total counter\n" +
		"test_writes_skipped_total{controller=\"a-controller\",resource=\"deployments.apps\"} 0\n" +
		"# HELP test_writes_total [ALPHA] Number of writes by controller, verb, resource and result (written, conflict, refused, denied, failed). Refused writes are not sent to the API server.\n" +
		"# TYPE test_writes_total counter\n")
	for _, verb := range []string{"create", "patch"} {
		for _, result := range []string{"conflict", "denied", "failed", "refused", "written"} {
			fmt.Fprintf(&want, "test_writes_total{controller=\"a-controller\",resource=\"deployments.apps\",result=%q,verb=%q} 0\n", result, verb)
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String())); err != nil {
		t.Error(err)
	}
}

// A controller may read an object before it writes it.
func TestReadsAreNotRecordedUnlessDenied(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	f := newFixture(t, NewMetrics("test", registry.MustRegister))
	f.api.deny(everything)
	ctx, written := reconcile.WithRecorder(t.Context())
	for range 3 {
		if _, err := f.client.AppsV1().Deployments("x").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing: %v, want it denied", err)
		}
	}
	f.wantRequests(3)
	f.wantDenied(`may not list deployments.apps in namespace "x"`)
	expect(t, registry)
	if got := written(); len(got) > 0 {
		t.Errorf("recorded writes %v, want none", got)
	}
	f.api.deny(nothing)
	if _, err := f.client.AppsV1().Deployments("x").List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	f.wantDenied()
}

func TestFirstWritesAreRecordedInOrder(t *testing.T) {
	f := newFixture(t, nil)
	ctx, written := reconcile.WithRecorder(t.Context())
	if err := f.create(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	f.api.deny(everything)
	_ = f.patch(ctx, "x", "a", "status")
	_ = f.create(t.Context(), "y") // in another sync
	want := []reconcile.Write{
		{Verb: "create", Resource: "deployments.apps", Result: "written"},
		{Verb: "patch", Resource: "deployments/status.apps", Result: "denied"},
	}
	if diff := cmp.Diff(want, written()); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}

	var patching sync.WaitGroup
	for range 20 {
		patching.Go(func() { _ = f.patch(ctx, "x", "c") })
	}
	patching.Wait()
	if got := written(); len(got) != 8 || got[0].Verb != "create" {
		t.Errorf("%d writes, the first %v, want 8 and %v", len(got), got[0], want[0])
	}
}

// slowBody is a response body that arrives a second after the header, or never.
type slowBody struct {
	io.ReadCloser
	never <-chan struct{}
}

func (b slowBody) Read(p []byte) (int, error) {
	select {
	case <-b.never:
		return 0, context.DeadlineExceeded
	case <-time.After(time.Second):
		return b.ReadCloser.Read(p)
	}
}

// A write whose response is cut off counts as failed, although it may have succeeded.
func TestResultsIncludeReadingTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.api.delay = 3 * time.Second
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := f.api.RoundTrip(r)
			if err == nil {
				response.Body = slowBody{response.Body, r.Context().Done()}
			}
			return response, err
		})
		f.client = client(t, f.transport, slow, runtime.ContentTypeJSON)
		ctx, written := reconcile.WithRecorder(t.Context())
		_ = f.create(ctx, "x") // in two reads
		inTime, cancel := context.WithTimeout(ctx, 3500*time.Millisecond)
		defer cancel()
		if err := f.create(inTime, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("creating: %v, want a timeout", err)
		}
		f.api.set(func(a *api) { a.broken = errors.New("connection refused") })
		_ = f.create(ctx, "x")
		f.api.set(func(a *api) { a.broken = nil })
		f.api.deny(everything)
		_ = f.create(ctx, "x")
		want := []reconcile.Write{
			{Verb: "create", Resource: "deployments.apps", Result: "written"},
			{Verb: "create", Resource: "deployments.apps", Result: "failed"},
			{Verb: "create", Resource: "deployments.apps", Result: "failed"},
			{Verb: "create", Resource: "deployments.apps", Result: "denied"},
		}
		if diff := cmp.Diff(want, written()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

// TestMissingPermissionIsLoggedOnce revokes a permission in 50 namespaces and grants it again.
func TestMissingPermissionIsLoggedOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	f := newFixture(t, nil)
	f.api.deny(everything)
	for range 3 {
		for i := range 50 {
			_ = f.create(ctx, fmt.Sprint(i))
		}
	}
	f.api.deny(nothing)
	for i := range 50 {
		if err := f.create(ctx, fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		if entry.Verbosity <= 1 { // client-go logs at 2
			got = append(got, fmt.Sprint(entry.Type, " ", entry.Message))
		}
	}
	want := []string{"ERROR Permission is missing, retrying with backoff", "INFO Permission is granted again"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

func BenchmarkPatch(b *testing.B) {
	m := NewMetrics("test", func(...metrics.Registerable) {})
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(m.total, m.skipped)
	for name, through := range map[string]func(http.RoundTripper) http.RoundTripper{
		"without": func(next http.RoundTripper) http.RoundTripper { return next },
		"with":    New("a-controller", m, errRefused).Wrap,
	} {
		b.Run(name, func(b *testing.B) {
			response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
			transport := through(roundTripper(func(*http.Request) (*http.Response, error) { return response, nil }))
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, "https://api.test/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos/a/status", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transport.RoundTrip(request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, _ := reconcile.WithRecorder(context.Background())
			reconcile.RecordWrite(ctx, "patch", "deployments.apps")("written")
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
