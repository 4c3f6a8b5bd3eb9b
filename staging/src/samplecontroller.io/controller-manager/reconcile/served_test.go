// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

var errAbsent = errors.New("configmaps are not served")

// sources are Sources that a test can switch on and off.
type sources struct {
	mutex   sync.Mutex
	err     error
	changed chan struct{}
	asked   []cache.Store
}

func newSources(err error) *sources { return &sources{err: err, changed: make(chan struct{})} }

func (s *sources) Served(stores ...cache.Store) (error, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.asked = stores
	return s.err, s.changed
}

func (s *sources) Resource(cache.Store) string { return "configmaps" }

// become changes the result of Served.
func (s *sources) become(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
	close(s.changed)
	s.changed = make(chan struct{})
}

func TestLoopIsPausedWhileSourceIsUnavailable(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		b.server.Add(configMap("foo"))
		sources := newSources(errAbsent)
		var s syncs
		l := New(loopName, s.sync, WithSources(sources))
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		began := time.Now()
		expectEnqueued(t, &s, "before it is served")
		if p := l.Progress(all); p.Working || p.Blocker != errAbsent || !p.Since.Equal(began) {
			t.Errorf("working %t, blocker %v since %v, want %v since %v", p.Working, p.Blocker, p.Since, errAbsent, began)
		}
		if len(sources.asked) != 1 || sources.asked[0] != b.informer.GetStore() {
			t.Errorf("asked for %d stores, want only that of the informer", len(sources.asked))
		}

		for range 3 {
			time.Sleep(time.Minute)
			sources.become(nil)
			expectEnqueued(t, &s, "when it is served: a full resync", "default/foo")
			if p := l.Progress(all); !p.Working || p.Blocker != nil || !p.Since.Equal(time.Now()) {
				t.Errorf("working %t, blocker %v since %v, want no blocker, since now", p.Working, p.Blocker, p.Since)
			}
			b.server.Modify(configMap("foo"))
			expectEnqueued(t, &s, "while it is served", "default/foo")

			time.Sleep(time.Minute)
			sources.become(errAbsent)
			synctest.Wait()
			b.server.Modify(configMap("foo"))
			expectEnqueued(t, &s, "when it is no longer served")
			if p := l.Progress(all); p.Working || p.Blocker != errAbsent || !p.Since.Equal(time.Now()) {
				t.Errorf("working %t, blocker %v since %v, want %v since now", p.Working, p.Blocker, p.Since, errAbsent)
			}
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// The API becomes unavailable and available again during a sync. The loop starts again without
// a pause.
func TestKeysOfDroppedQueueAreForgotten(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		b.server.Add(configMap("slow"))
		b.server.Add(configMap("gone"))
		sources := newSources(nil)
		l := New(loopName, func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			if key.Name == "slow" {
				time.Sleep(10 * time.Second)
				return 0, nil
			}
			return 0, errors.New("broken")
		}, WithSources(sources))
		WatchSelf(l, b.informer)
		stop := b.run(l, 2)
		time.Sleep(3 * time.Second)
		if p := l.Progress(all); p.Failing != 1 || p.Running.Total != 1 {
			t.Errorf("%d keys fail, %d run, want one each", p.Failing, p.Running.Total)
		}
		sources.become(errAbsent)
		synctest.Wait()
		b.server.Delete(configMap("gone"))
		synctest.Wait()
		sources.become(nil)
		time.Sleep(20 * time.Minute)
		if p := l.Progress(all); !p.Working || p.Failing != 0 || p.Running.Total+p.Waiting.Total+p.Delayed.Total != 0 {
			t.Errorf("working: %t, %d keys fail, waiting %v, delayed %v, want nothing of a deleted key", p.Working, p.Failing, p.Waiting, p.Delayed)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Changes that neither pause nor resume the loop have no effect.
func TestSourceChangesWithoutEffect(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		b.server.Add(configMap("foo"))
		sources := newSources(errAbsent)
		var s syncs
		l := New(loopName, s.sync, WithSources(sources))
		WatchSelf(l, b.informer)
		time.Sleep(time.Minute)
		stop := b.run(l, 1)
		began := time.Now()
		time.Sleep(time.Minute)
		sources.become(errBroken)
		synctest.Wait()
		if p := l.Progress(all); p.Blocker != errBroken || !p.Since.Equal(began) {
			t.Errorf("blocker %v since %v, want %v since the pause at %v", p.Blocker, p.Since, errBroken, began)
		}
		sources.become(nil)
		expectEnqueued(t, &s, "when it is served", "default/foo")
		sources.become(nil)
		expectEnqueued(t, &s, "when it is still served")
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestFailedRunStopsWatchingSources(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		sources := newSources(nil)
		l := New(loopName, new(syncs).sync, WithSources(sources))
		WatchSelf(l, brokenInformer{b.informer})
		if err := l.Run(b.ctx); !errors.Is(err, errNoHandler) {
			t.Errorf("Run: %v, want %v", err, errNoHandler)
		}
		sources.asked = nil
		sources.become(errAbsent)
		synctest.Wait()
		if sources.asked != nil {
			t.Error("the sources were asked after Run had returned")
		}
	})
}

func TestTriggerNamesResource(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync, WithSources(newSources(nil)))
		WatchSelf(l, b.informer)
		defer b.run(l, 1)()
		b.server.Add(configMap("foo"))
		synctest.Wait()
		b.server.Modify(configMap("foo"))
		synctest.Wait()
		b.server.Delete(configMap("foo"))
		synctest.Wait()
		var triggers []string
		for _, o := range l.Progress(all).Recent {
			triggers = append(triggers, o.Trigger)
		}
		if diff := cmp.Diff([]string{"configmaps deleted", "configmaps changed", "configmaps added"}, triggers); diff != "" {
			t.Errorf("triggers (-want +got):\n%s", diff)
		}
	})
}
