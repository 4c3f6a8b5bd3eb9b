// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/internal/supervisor"
)

// TestObjectOfEarlierOwnerIsReported creates the owner again while its Service remains.
func TestObjectOfEarlierOwnerIsReported(t *testing.T) {
	Run(t, ensureProgram(), func(t *testing.T, e *Env) {
		const earlier = "Warning NotCollected Service ns/a belongs to an earlier ConfigMap ns/a, but "
		again := func() *corev1.ConfigMap { return owner("ns", map[string]string{"UDP": "53"}) }
		e.Create(again())
		e.Settle()
		e.Delete(again())
		e.Settle()
		expect(t, "writes", e.Writes(), "create services ns/a")
		e.Create(again())
		time.Sleep(time.Minute - 2*time.Second)
		synctest.Wait()
		expect(t, "Events before a minute", e.Events())
		if p := e.controllers[0].(supervisor.Looper).Loops()[0].Progress(1); p.Failing > 0 || p.Delayed.Total != 1 {
			t.Errorf("%d objects are failing and %d delayed before a minute, want one delayed", p.Failing, p.Delayed.Total)
		}
		time.Sleep(time.Hour)
		expect(t, "Events", e.Events(),
			earlier+"the garbage collector has not deleted it: delete it with kubectl -n ns delete services a")

		Update(e, "ns", "a", func(s *corev1.Service) { s.Finalizers = []string{"example.com/a", "example.com/b"} })
		e.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		expect(t, "Events", e.Events(),
			earlier+"its deletion waits for the finalizers example.com/a, example.com/b: "+
				"fix what removes them, or remove them with kubectl -n ns edit services a")
		expect(t, "writes", e.Writes())
		Update(e, "ns", "a", func(s *corev1.Service) { s.Finalizers = nil })
		e.Settle()
		expect(t, "writes", e.Writes(), "create services ns/a")
	})
}

// laggingWatch is a transport whose watches of a resource receive nothing while they are held.
type laggingWatch struct {
	http.RoundTripper
	resource string
	held     atomic.Pointer[chan struct{}] // closed when they are no longer held; nil: not held
	broken   atomic.Bool                   // a watch that was held has then ended
}

func (l *laggingWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/"+l.resource) && r.URL.Query().Get("watch") != "" {
		response.Body = &laggingBody{response.Body, l}
	}
	return response, err
}

// hold holds the events from now on until release.
func (l *laggingWatch) hold() (release func()) {
	held := make(chan struct{})
	l.held.Store(&held)
	return func() { l.held.Store(nil); close(held) }
}

type laggingBody struct {
	io.ReadCloser
	lagging *laggingWatch
}

func (b *laggingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if held := b.lagging.held.Load(); held != nil {
		<-*held
		if b.lagging.broken.Load() {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// TestObjectOfNextOwnerIsNotReported creates an owner again, and its Service as another process
// would, while the cache has the earlier owner.
func TestObjectOfNextOwnerIsNotReported(t *testing.T) {
	runLagging(t, func(t *testing.T, e *Env, hold func() func()) {
		again := func() *corev1.ConfigMap { return owner("ns", map[string]string{"UDP": "53"}) }
		e.Create(again())
		time.Sleep(time.Hour)
		expect(t, "writes", e.Writes(), "create services ns/a")
		release := hold()
		e.Delete(again())
		e.Create(again())
		next, _ := Get[*corev1.ConfigMap](e, "ns", "a")
		Update(e, "ns", "a", func(s *corev1.Service) { s.OwnerReferences[0].UID = next.UID })
		time.Sleep(10 * time.Second)
		release()
		time.Sleep(time.Hour)
		expect(t, "Events", e.Events())
		expect(t, "writes", e.Writes())
	})
}
