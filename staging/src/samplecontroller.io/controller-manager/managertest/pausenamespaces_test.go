// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/internal/fakeapi"
)

// namespacesGuard answers the requests of the pause watch with an error, or not at all.
type namespacesGuard struct {
	next    http.RoundTripper
	code    atomic.Int32 // 0: it passes them
	denials atomic.Int32 // how many it denies nevertheless
	hangs   bool
	end     atomic.Pointer[context.CancelFunc] // ends the last watch
}

func (g *namespacesGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.UserAgent(), "/pause") {
		return g.next.RoundTrip(r)
	}
	if g.code.Load() == http.StatusInternalServerError {
		return fakeapi.Answer(r, http.StatusInternalServerError, apierrors.NewInternalError(errors.New("etcd")).Status())
	}
	if g.code.Load() != 0 || g.denials.Add(-1) >= 0 {
		return fakeapi.Answer(r, http.StatusForbidden, apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil).Status())
	}
	if g.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.URL.Query().Get("watch") != "" {
		ctx, end := context.WithCancel(r.Context())
		g.end.Store(&end)
		r = r.WithContext(ctx)
	}
	return g.next.RoundTrip(r)
}

// runGuarded is Run with a guard.
func runGuarded(t *testing.T, g *namespacesGuard, body func(*testing.T, *Env), args ...string) {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		p := failureProgram()
		api := fakeapi.New(schemeOf(t, p))
		g.next = api
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, g)
		e.wait, e.collect, e.serve = synctest.Wait, api.CollectGarbage, api.Serve
		e.run(t, p, body, args)
	})
}

func namespace(annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: annotations}}
}

// expectGauges expects the gauge of namespaces and that of paused objects.
func expectGauges(t *testing.T, when string, readable, objects float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			got[family.GetName()] += m.GetGauge().GetValue()
		}
	}
	if r, o := got["ensure_manager_pause_namespaces_readable"], got["ensure_manager_paused_objects"]; r != readable || o != objects {
		t.Errorf("%s: namespaces are readable: %v, paused objects: %v, want %v and %v", when, r, o, readable, objects)
	}
}

// TestUnreadableNamespaces permits to read namespaces only later.
func TestUnreadableNamespaces(t *testing.T) {
	g := &namespacesGuard{}
	g.code.Store(http.StatusForbidden)
	runGuarded(t, g, func(t *testing.T, e *Env) {
		e.createNamespace("ns")
		annotateNamespace(e, "true")
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		expectGauges(t, "forbidden", 0, 0)
		annotate(e, "true")
		e.Settle()
		expect(t, "writes of a paused object", e.Writes(), statusPatch)
		annotate(e, "-")
		e.Settle()
		expect(t, "writes of a resumed object", e.Writes(), statusPatch)
		log := e.logged()
		if n := strings.Count(log, "Ignoring the pause annotation of namespaces"); n != 1 || strings.Contains(log, "Not permitted to read") {
			t.Errorf("%d lines about it, want 1:\n%s", n, log)
		}
		g.code.Store(0)
		sleep(15 * time.Second)
		expect(t, "writes when namespaces can be read", e.Writes(), statusPatch)
		expectGauges(t, "granted", 1, 1)
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Paused PausedByNamespace")
	})
}

// TestDeniedWatchOfNamespaces ends the watch of namespaces, and denies the next one: first one request, then all.
func TestDeniedWatchOfNamespaces(t *testing.T) {
	g := &namespacesGuard{}
	runGuarded(t, g, func(t *testing.T, e *Env) {
		e.Create(namespace(map[string]string{paused: "true"}), widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		for range 2 {
			g.denials.Store(1)
			(*g.end.Load())()
			sleep(time.Minute)
			expect(t, "writes after one denial", e.Writes())
			expectGauges(t, "after one denial", 1, 1)
		}
		g.code.Store(http.StatusForbidden)
		(*g.end.Load())()
		sleep(9 * time.Second)
		expect(t, "writes after 9 s of denials", e.Writes())
		expectGauges(t, "after 9 s of denials", 0, 1)
		sleep(3 * time.Second)
		expect(t, "writes after 12 s of denials", e.Writes(), "create secrets ns/a", statusPatch)
		expectGauges(t, "denied", 0, 0)
		g.code.Store(0)
		sleep(15 * time.Second)
		expect(t, "writes when namespaces can be read", e.Writes(), statusPatch)
		expectGauges(t, "granted", 1, 1)
	})
}

// TestFailingWatchOfNamespaces makes the API server fail after it has listed the namespaces: the list still counts.
func TestFailingWatchOfNamespaces(t *testing.T) {
	g := &namespacesGuard{}
	runGuarded(t, g, func(t *testing.T, e *Env) {
		e.Create(namespace(map[string]string{paused: "true"}), widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		g.code.Store(http.StatusInternalServerError)
		(*g.end.Load())()
		sleep(10 * time.Minute)
		expect(t, "writes after 10 min of errors", e.Writes())
		expectGauges(t, "failing", 0, 1)
		g.code.Store(0)
		sleep(time.Minute)
		expect(t, "writes when namespaces can be read", e.Writes())
		expectGauges(t, "readable", 1, 1)
	})
}

// TestUnansweredNamespaces never answers the requests for namespaces. Nothing is written until it is given up.
func TestUnansweredNamespaces(t *testing.T) {
	runGuarded(t, &namespacesGuard{hangs: true}, func(t *testing.T, e *Env) {
		sleep(time.Minute) // the wait begins with the first object
		e.Create(widget("ns", "v1"))
		sleep(9 * time.Second)
		expect(t, "writes after 9 s", e.Writes())
		sleep(6 * time.Second)
		expect(t, "writes after 15 s", e.Writes(), "create secrets ns/a", statusPatch)
		expectGauges(t, "no answer", 0, 0)
	})
}

// TestObjectWaitsForItsNamespace creates an object whose namespace the cache does not have yet.
func TestObjectWaitsForItsNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		writes      []string // once the cache has the namespace
	}{
		"paused":     {map[string]string{paused: "true"}, []string{statusPatch}},
		"not paused": {nil, []string{"create secrets ns/a", statusPatch}},
	} {
		t.Run(name, func(t *testing.T) {
			runLaggingProgram(t, failureProgram(), "namespaces", func(t *testing.T, e *Env, hold func() func()) {
				e.Settle()
				release := hold()
				e.Create(namespace(test.annotations), widget("ns", "v1"))
				sleep(5 * time.Second)
				expect(t, "writes without the namespace", e.Writes())
				release()
				sleep(50 * time.Millisecond)
				expect(t, "writes", e.Writes(), test.writes...)
			})
		})
	}
}

// TestObjectWithoutNamespace has an object whose namespace the cache never has.
func TestObjectWithoutNamespace(t *testing.T) {
	runLaggingProgram(t, failureProgram(), "namespaces", func(t *testing.T, e *Env, hold func() func()) {
		defer hold()()
		e.Create(widget("ns", "v1"))
		for _, image := range []string{"v1", "v2"} {
			change(e, image)
			sleep(9 * time.Second)
			expect(t, "writes after 9 s", e.Writes())
			sleep(3 * time.Second)
			if writes := e.Writes(); len(writes) != 2 {
				t.Errorf("writes after 12 s: %q, want the Secret and the status", writes)
			}
			sleep(5 * time.Minute)
			expect(t, "later writes", e.Writes())
		}
	})
}

// TestSingleNamespaceIsNotRead serves one namespace, whose annotation is ignored.
func TestSingleNamespaceIsNotRead(t *testing.T) {
	Run(t, failureProgram(), func(t *testing.T, e *Env) {
		e.createNamespace("ns")
		annotateNamespace(e, "true")
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		expectGauges(t, "one namespace", 0, 0)
		if log := e.logged(); !strings.Contains(log, "INFO Ignoring the pause annotation of the namespace, because --namespace is set") {
			t.Errorf("the log does not say that the namespace is not read:\n%s", log)
		}
		annotate(e, "true")
		e.Settle()
		expect(t, "writes of a paused object", e.Writes(), statusPatch)
	}, "--namespace=ns")
}

// TestPausedObjectsAreCounted deletes a paused object, and ends the term with another one.
func TestPausedObjectsAreCounted(t *testing.T) {
	Run(t, failureProgram(), func(t *testing.T, e *Env) {
		for _, ns := range []string{"ns", "other"} {
			w := widget(ns, "v1")
			setPause(w, "true")
			e.Create(w)
		}
		e.Settle()
		expectGauges(t, "two", 1, 2)
		e.Delete(widget("other", ""))
		e.Settle()
		expectGauges(t, "one is deleted", 1, 1)
		e.LoseLead()
		e.Settle()
		expectGauges(t, "on a standby", 1, 0)
		e.Lead()
		e.Settle()
		expectGauges(t, "in the next term", 1, 1)
		annotate(e, "-")
		e.Settle()
		expectGauges(t, "resumed", 1, 0)
	})
}

// TestPausedObjectsGoWithTheirAPI deletes a CRD, and with it a paused object whose deletion the loop does not see.
func TestPausedObjectsGoWithTheirAPI(t *testing.T) {
	Run(t, failureProgram(), func(t *testing.T, e *Env) {
		e.InstallCRDs("testdata/widgets.yaml")
		w := widget("ns", "v1")
		setPause(w, "true")
		e.Create(w)
		e.Settle()
		expectGauges(t, "paused", 1, 1)
		if err := e.user.Resource(crds).Delete(t.Context(), "widgets.test.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		sleep(15 * time.Minute) // the watch ends
		expectGauges(t, "not served", 1, 0)
		e.InstallCRDs("testdata/widgets.yaml")
		sleep(time.Minute)
		expectGauges(t, "served again", 1, 0)
	})
}
