// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

func TestRunFailsWithoutWorkers(t *testing.T) {
	for _, workers := range []int{0, -1} {
		inBubble(t, 0, func(b *bubble) {
			l := New(loopName, new(syncs).sync, WithWorkers(workers))
			WatchSelf(l, b.informer)
			err := l.Run(b.ctx)
			if err == nil || !strings.Contains(err.Error(), loopName) {
				t.Errorf("Run with %d workers: error %v, want one that names %s", workers, err, loopName)
			}
			if len(b.informer.handlers) > 0 {
				t.Errorf("Run with %d workers added handlers", workers)
			}
		})
	}
}

func TestLoopWithoutWatchesIsInvalid(t *testing.T) {
	err := New(loopName, new(syncs).sync).Validate()
	if err == nil || !strings.Contains(err.Error(), "no watches") {
		t.Errorf("Validate: error %v, want one that says that there are no watches", err)
	}
}

// slowServer blocks List until open is closed.
type slowServer struct {
	apiServer
	open chan struct{}
}

func (s slowServer) List(options metav1.ListOptions) (runtime.Object, error) {
	<-s.open
	return s.apiServer.List(options)
}

func TestNoSyncBeforeInformersHaveSynced(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		slow := slowServer{b.server, make(chan struct{})}
		late := newInformer(slow, 0)
		b.start(b.informer)
		b.start(late)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		Watch(l, late, owners)
		defer b.run(l, 2)()

		time.Sleep(time.Hour)
		expectEnqueued(t, &s, "while one informer has not synced")
		close(slow.open)
		expectEnqueued(t, &s, "when all have synced", "default/a", "default/foo")
	})
}

// An informer may have synced long before the loop's handlers have seen its store.
func TestNoSyncBeforeHandlersHaveSynced(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		synctest.Wait()
		if !b.informer.HasSynced() {
			t.Fatal("the informer has not synced")
		}

		seen := make(chan struct{})
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		Watch(l, b.informer, func(c *corev1.ConfigMap) []cache.ObjectName {
			<-seen
			return owners(c)
		})
		defer b.run(l, 2)()

		time.Sleep(time.Hour)
		expectEnqueued(t, &s, "while a handler is running")
		close(seen)
		expectEnqueued(t, &s, "when the handler has returned", "default/a", "default/foo")
	})
}

func TestStopBeforeInformersHaveSynced(t *testing.T) {
	tests := map[string]func(b *bubble, informer cache.SharedInformer){
		"informer never started": func(*bubble, cache.SharedInformer) {},
		"informer started":       func(b *bubble, informer cache.SharedInformer) { b.start(informer) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				b.server.Add(configMap("foo"))
				slow := slowServer{b.server, make(chan struct{})}
				informer := newInformer(slow, 0)
				prepare(b, informer)
				var s syncs
				l := New(loopName, s.sync)
				WatchSelf(l, informer)
				stop := b.run(l, 2)

				if err := stop(); err != nil {
					t.Errorf("Run: %v", err)
				}
				// The handler was removed, so new objects have no effect.
				close(slow.open)
				expectEnqueued(t, &s, "after the end of Run")
				if got := b.logged(0); len(got) > 0 {
					t.Errorf("logged %q, want nothing, because no worker was started", got)
				}
			})
		})
	}
}

func TestRunWithCanceledContext(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		synctest.Wait()
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		if err := l.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		expectEnqueued(t, &s, "by a Run with a canceled context")
	})
}

// brokenInformer rejects handlers.
type brokenInformer struct{ *watchedInformer }

var errNoHandler = errors.New("no handler, please")

func (brokenInformer) AddTypedEventHandler(cache.TypedResourceEventHandler[*corev1.ConfigMap],
	...cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return nil, errNoHandler
}

func TestFailedRunRemovesHandlers(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		WatchSelf(l, brokenInformer{newInformer(b.server, 0)})
		if err := l.Run(b.ctx); !errors.Is(err, errNoHandler) || !strings.Contains(err.Error(), loopName) {
			t.Errorf("Run: error %v, want one that wraps %q and names %s", err, errNoHandler, loopName)
		}
		b.server.Add(configMap("foo"))
		expectEnqueued(t, &s, "after a failed Run")
	})
}

func TestRunFailsWithStoppedInformer(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan struct{})
		go func() { b.informer.RunWithContext(ctx); close(done) }()
		synctest.Wait()
		cancel()
		<-done

		l := New(loopName, new(syncs).sync)
		WatchSelf(l, b.informer)
		if err := l.Run(b.ctx); err == nil {
			t.Error("Run: no error, want one: the informer delivers no events")
		}
	})
}
