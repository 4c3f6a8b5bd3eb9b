// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func newIdleInformer() *informer {
	return &informer{resource: configMaps, factory: NewFactory(), opened: make(chan struct{}, 1)}
}

func TestWatchStopsWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFake() // its sender blocks until the event is received
		w := newWatchProxy(source, newIdleInformer(), false)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			source.Add(&corev1.ConfigMap{})
		}()
		synctest.Wait() // until the event waits to be forwarded
		w.Stop()
		w.Stop() // stopping twice is allowed
		<-sent
		if _, ok := <-w.ResultChan(); ok {
			t.Error("an event after Stop has returned")
		}
	})
}

func TestExpiredWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewRaceFreeFake()
		source.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		i := newIdleInformer()
		i.setListed(new(string))
		w := newWatchProxy(source, i, false)
		synctest.Wait()
		begin := time.Now()
		w.Stop()
		if took := time.Since(begin); took > 0 {
			t.Errorf("Stop took %v, want none", took)
		}
		if !i.mustRelist() {
			t.Error("the informer does not list again")
		}
	})
}

// The proxy handles only the expiry of a watch that resumes from a list.
func TestOtherWatchErrorsReachTheInformer(t *testing.T) {
	expired := metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	internal := metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError}
	for name, tc := range map[string]struct {
		status     metav1.Status
		listsFirst bool
	}{
		"internal error":                       {internal, false},
		"internal error of a watch that lists": {internal, true},
		"expired watch that lists":             {expired, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := watch.NewRaceFreeFake()
				source.Error(&tc.status)
				i := newIdleInformer()
				i.setListed(new(string))
				w := newWatchProxy(source, i, tc.listsFirst)
				if event := <-w.ResultChan(); event.Type != watch.Error || event.Object != &tc.status {
					t.Errorf("event is %v, want the error that was sent", event)
				}
				if i.mustRelist() {
					t.Error("the informer must list again although the version has not expired")
				}
				w.Stop()
			})
		})
	}
}

func TestWatchEndsWithSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewRaceFreeFake()
		source.Add(&corev1.ConfigMap{})
		source.Stop()
		w := newWatchProxy(source, newIdleInformer(), false)
		if event := <-w.ResultChan(); event.Type != watch.Added {
			t.Errorf("the first event is %q, want the event that was sent", event.Type)
		}
		if event, ok := <-w.ResultChan(); ok {
			t.Errorf("another event: %q", event.Type)
		}
		w.Stop()
	})
}

func TestEventsAreSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdleInformer()
		source := watch.NewRaceFreeFake()
		time.Sleep(time.Hour)
		expect := func(when string) {
			t.Helper()
			if got, want := time.Duration(i.lastSign.Load()), time.Since(i.factory.made); got != want {
				t.Errorf("the last sign of life %s is of %v, want %v", when, got, want)
			}
		}
		w := newWatchProxy(source, i, false)
		expect("when it is opened")
		for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark} {
			time.Sleep(time.Minute)
			source.Action(event, &corev1.ConfigMap{})
			<-w.ResultChan()
			expect(string(event))
		}
		w.Stop()
	})
}

// BenchmarkWatchProxy compares a watch with and without the proxy.
func BenchmarkWatchProxy(b *testing.B) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	for name, wrap := range map[string]func(watch.Interface) watch.Interface{
		"bare":  func(w watch.Interface) watch.Interface { return w },
		"noted": func(w watch.Interface) watch.Interface { return newWatchProxy(w, newIdleInformer(), true) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			source := watch.NewFake()
			w := wrap(source)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range b.N {
					source.Modify(object)
				}
			}()
			for range b.N {
				<-w.ResultChan()
			}
			<-done
			w.Stop()
		})
	}
}

// For a watch that loses its connection, client-go returns a watch that ends at once, and no
// error.
func TestUnansweredWatchIsNoSignOfLife(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		b.configMapServer.loseConnections(true)
		cut := time.Now()
		time.Sleep(maxSilence)
		if got := b.factory.Resources()[0]; !got.Served || got.LastSign.After(cut) {
			t.Errorf("served: %v, last sign of life %v after the connection was lost", got.Served, got.LastSign.Sub(cut))
		}
		if b.factory.CheckWatches() == nil {
			t.Error("the watch counts as healthy")
		}
		b.configMapServer.loseConnections(false)
		time.Sleep(time.Minute) // the informer has backed off
		if err := b.factory.CheckWatches(); err != nil {
			t.Errorf("once watches get responses: %v", err)
		}
	})
}
