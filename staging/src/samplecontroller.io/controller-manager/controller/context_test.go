// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// server records each request and answers with 429, so that clients retry.
type server struct {
	*httptest.Server
	mutex    sync.Mutex
	requests []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.requests = append(s.requests, r.Method+" "+r.UserAgent()+" "+r.Header.Get("Content-Type"))
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) got() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

// contexts returns the contexts of two controllers of a process, and the gate of the process.
func contexts(t *testing.T, url string) (a, b *Context, gate *leadership.Gate) {
	t.Helper()
	p := newProcess(t, url)
	constructor := func(to **Context) Constructor {
		return func(_ context.Context, c *Context) (Controller, error) {
			*to = c
			return fakeController(c.Name()), nil
		}
	}
	descriptors := NewRegistry(
		Descriptor{Name: "a-controller", Workers: 1, New: constructor(&a), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"example.com"}, Resources: []string{"foos/status"}, Verbs: []string{"update"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
		}},
		Descriptor{Name: "b-controller", Workers: 1, New: constructor(&b)},
	)
	if _, err := descriptors.Build(t.Context(), p, descriptors.Names()); err != nil {
		t.Fatal(err)
	}
	return a, b, p.Gate
}

func newProcess(t *testing.T, url string) *Shared {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	events := record.NewBroadcaster()
	t.Cleanup(events.Shutdown)
	return &Shared{
		Workers:     func(string) int { return 1 },
		Events:      events,
		Scheme:      scheme.Scheme,
		Config:      &restclient.Config{Host: url},
		UserAgent:   func(name string) string { return "test/" + name },
		Gate:        leadership.NewGate(100 * time.Millisecond),
		Informers:   informers.NewFactory(),
		Namespace:   "team",
		SyncTimeout: time.Minute,
		Metrics: Metrics{
			Syncs:  reconcile.NewMetrics("test", registry.MustRegister),
			Writes: writes.NewMetrics("test", registry.MustRegister),
		},
	}
}

func TestRequestsOfControllers(t *testing.T) {
	s := newServer(t)
	a, _, gate := contexts(t, s.URL)
	client, err := corev1client.NewForConfig(a.ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := client.ConfigMaps("team").Create(t.Context(), configMap, metav1.CreateOptions{}); !errors.Is(err,
		leadership.ErrNotLeading) {
		t.Errorf("Create on a standby: %v, want %v", err, leadership.ErrNotLeading)
	}
	if _, err := client.ConfigMaps("team").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("Get: no error, want one after the write timeout")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = leadership.RunWithoutElection(ctx, gate, func(*leadership.Term) error {
		defer cancel()
		if _, err := client.ConfigMaps("team").Create(t.Context(), configMap, metav1.CreateOptions{}); err == nil {
			t.Error("Create: no error, want one after the write timeout")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// client-go would retry after a second, which is after the timeout.
	want := []string{"GET test/a-controller ", "POST test/a-controller application/vnd.kubernetes.protobuf"}
	if diff := cmp.Diff(want, s.got()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRequestsOfInformersHaveNoTimeout(t *testing.T) {
	a, _, _ := contexts(t, "http://localhost:1")
	if config := a.ReadConfig(); config.Timeout != 0 || config.UserAgent != "test/informers" {
		t.Errorf("timeout %v, user agent %q, want 0 and test/informers", config.Timeout, config.UserAgent)
	}
}

func TestControllersShareProcess(t *testing.T) {
	a, b, _ := contexts(t, "http://localhost:1")
	foos, bars := schema.GroupResource{Group: "example.com", Resource: "foos"}, schema.GroupResource{Group: "example.com", Resource: "bars"}
	if a.ConsistencyStore(foos) != b.ConsistencyStore(foos) {
		t.Error("the controllers do not share the ConsistencyStore of a resource")
	}
	if a.ConsistencyStore(foos) == a.ConsistencyStore(bars) {
		t.Error("two resources share a ConsistencyStore")
	}
	if a.writes() == b.writes() {
		t.Error("two controllers share the count of their writes")
	}
	For[*appsv1.StatefulSet](a, MayPatchStatus())
	For[*batchv1.Job](a)
	if groups := b.StatusGroups(); !groups.Equal(sets.New("example.com", "apps")) {
		t.Errorf("status groups are %v, want only example.com", groups)
	}
	if a.Namespace() != "team" || a.Informers() != b.Informers() {
		t.Error("the controllers serve different namespaces or have different informers")
	}
}

// TestPurposeHasEventsOfItsOwn sends as many Events as the recorder accepts from one source about
// one object.
func TestPurposeHasEventsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := contexts(t, "http://localhost:1")
		sent := make(chan *corev1.Event, 100)
		a.shared.Events.StartRecordingToSink(sink{sent})
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "uid-a"}}
		for i := range 40 {
			a.RecorderFor("placement").Eventf(object, corev1.EventTypeNormal, "Placed", "%d", i)
		}
		a.Recorder().Event(object, corev1.EventTypeNormal, "Synced", "synced")
		synctest.Wait()
		close(sent)
		bySource := map[string]int{}
		for event := range sent {
			bySource[event.Source.Component]++
		}
		if n := bySource["a-controller-placement"]; n < 10 || n == 40 || bySource["a-controller"] != 1 {
			t.Errorf("Events by source: %v, want some placements and one other", bySource)
		}
	})
}

// sink sends Events to a channel.
type sink struct{ sent chan *corev1.Event }

func (s sink) Create(e *corev1.Event) (*corev1.Event, error) { s.sent <- e; return e, nil }

func (s sink) Update(e *corev1.Event) (*corev1.Event, error) { s.sent <- e; return e, nil }

func (s sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { s.sent <- e; return e, nil }
