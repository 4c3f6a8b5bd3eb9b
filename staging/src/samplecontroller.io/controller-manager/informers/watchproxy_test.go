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

func proxy(t testing.TB, w watch.Interface, i *informer, listsFirst bool) *watchProxy {
	return newWatchProxy(t.Context(), w, i, listsFirst, func() {})
}

func newIdleInformer() *informer {
	return &informer{SharedIndexInformer: syncedAt{}, resource: configMaps, factory: NewFactory()}
}

func TestWatchStopsWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFake() // its sender blocks until the event is received
		w := proxy(t, source, newIdleInformer(), false)
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
		i.state.list("1")
		w := proxy(t, source, i, false)
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

func TestWatchErrors(t *testing.T) {
	expired := metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	internal := metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError}
	overload := metav1.Status{Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests}
	for name, tc := range map[string]struct {
		status     metav1.Status
		listsFirst bool
		forwarded  metav1.StatusReason // to the informer, if any
		phase      phase
		relists    bool
	}{
		"internal error":                       {internal, false, "", failing, false},
		"overload":                             {overload, false, "", failing, false},
		"expired":                              {expired, false, "", watching, true},
		"internal error of a watch that lists": {internal, true, metav1.StatusReasonInternalError, failing, false},
		"overload of a watch that lists":       {overload, true, metav1.StatusReasonInternalError, failing, false},
		"expired watch that lists":             {expired, true, metav1.StatusReasonExpired, listed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := watch.NewRaceFreeFake()
				source.Error(&tc.status)
				i := newIdleInformer()
				i.state.list("1")
				w := proxy(t, source, i, tc.listsFirst)
				event, open := <-w.ResultChan()
				if open != (tc.forwarded != "") || open && event.Object.(*metav1.Status).Reason != tc.forwarded {
					t.Errorf("event is %v, want an error with reason %q", event, tc.forwarded)
				}
				if i.mustRelist() != tc.relists || i.state.phase != tc.phase {
					t.Errorf("a new list is required: %t, phase %d, want %t, %d", i.mustRelist(), i.state.phase, tc.relists, tc.phase)
				}
				w.Stop()
			})
		})
	}
}

// closing is a watch whose decoder reports the closed response as an error, as client-go's does.
type closing struct{ *watch.RaceFreeFakeWatcher }

func (c closing) Stop() {
	if !c.IsStopped() {
		c.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError,
			Message: "response body closed"})
	}
	c.RaceFreeFakeWatcher.Stop()
}

func TestStoppingWatchIsNoFailure(t *testing.T) {
	expired := metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	for name, end := range map[string]func(source closing, w *watchProxy){
		"by the informer": func(_ closing, w *watchProxy) { w.Stop() },
		"because it expired": func(source closing, w *watchProxy) {
			source.Error(&expired)
			synctest.Wait()
			w.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := closing{watch.NewRaceFreeFake()}
				i := newIdleInformer()
				i.state.list("1")
				w := proxy(t, source, i, false)
				synctest.Wait()
				end(source, w)
				if err := i.state.failure(); err != nil {
					t.Errorf("failure: %v, want none", err)
				}
			})
		})
	}
}

func TestWatchEndsWithSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewRaceFreeFake()
		source.Add(&corev1.ConfigMap{})
		source.Stop()
		w := proxy(t, source, newIdleInformer(), false)
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
			synctest.Wait()
			if got := time.Since(i.state.sign); got != 0 {
				t.Errorf("the last sign of life %s is %v old", when, got)
			}
		}
		w := proxy(t, source, i, false)
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
		"noted": func(w watch.Interface) watch.Interface { return proxy(b, w, newIdleInformer(), true) },
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
