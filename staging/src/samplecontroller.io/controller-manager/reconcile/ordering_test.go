// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/ordering"
)

// inOrder returns the synced keys in the order of their syncs.
func (s *syncs) inOrder() []string {
	s.enqueued() // waits until the bubble is idle
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var keys []string
	for _, c := range s.calls {
		keys = append(keys, c.key)
	}
	return keys
}

func TestRunBeginsWithLatestChanges(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for i := range 12 { // so that versions have one or two digits
			b.server.Add(configMap(fmt.Sprintf("%c", 'a'+i)))
		}
		b.server.Modify(configMap("c"))
		dependents := newInformer(b.server, 0)
		b.start(b.informer)
		b.start(dependents)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		// If two objects enqueue the same key, the newer one counts.
		Watch(l, dependents, owners)
		b.server.Add(configMap("m", "b"))
		want := []string{"default/b", "default/m", "default/c", "default/l", "default/k", "default/j",
			"default/i", "default/h", "default/g", "default/f", "default/e", "default/d", "default/a"}
		for _, term := range []string{"first", "second"} {
			stop := b.run(l, 1)
			got := s.inOrder()
			slices.Sort(got[:2]) // these have the same version
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("synced in the %s term (-want +got):\n%s", term, diff)
			}
			s.reset()
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
}

func TestNewChangesComeBeforeBacklog(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.server.Add(configMap(name))
		}
		b.start(b.informer)
		s := syncs{result: func(string, int) (time.Duration, error) { time.Sleep(time.Second); return 0, nil }}
		l := New(loopName, s.sync)
		For(l, b.informer)
		defer b.run(l, 1)() // d is being synced
		b.server.Modify(configMap("a"))
		b.server.Add(configMap("e"))
		b.server.Modify(configMap("d"))
		time.Sleep(time.Minute)
		want := []string{"default/d", "default/a", "default/e", "default/d", "default/c", "default/b"}
		if diff := cmp.Diff(want, s.inOrder()); diff != "" {
			t.Errorf("synced (-want +got):\n%s", diff)
		}
	})
}

// TestRequeuedKeysComeAfterChanges requeues three keys, and changes one of them before it is
// synced again.
func TestRequeuedKeysComeAfterChanges(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		s := syncs{result: func(key string, n int) (time.Duration, error) {
			time.Sleep(time.Second)
			if n == 1 && key < "default/d" {
				return 10 * time.Second, nil
			}
			return 0, nil
		}}
		l := New(loopName, s.sync)
		For(l, b.informer)
		defer b.run(l, 1)()
		for _, name := range []string{"a", "b", "c"} { // again after 11, 12 and 13 s
			b.server.Add(configMap(name))
		}
		time.Sleep(10500 * time.Millisecond)
		b.server.Add(configMap("long")) // until 11.5 s
		time.Sleep(500 * time.Millisecond)
		for i := range 4 { // until 15.5 s; the tenth key may be any
			b.server.Add(configMap(fmt.Sprint("new-", i)))
		}
		time.Sleep(2500 * time.Millisecond)
		b.server.Modify(configMap("b"))
		time.Sleep(time.Minute)
		want := []string{"default/a", "default/b", "default/c", "default/long",
			"default/new-0", "default/new-1", "default/new-2", "default/new-3", "default/b", "default/a", "default/c"}
		if diff := cmp.Diff(want, s.inOrder()); diff != "" {
			t.Errorf("synced (-want +got):\n%s", diff)
		}
	})
}

// never reports that no key was requeued.
func never(cache.ObjectName) bool { return false }

// A key that is enqueued while the backlog is released comes once, and first.
func TestKeyEnqueuedDuringReleaseOfBacklog(t *testing.T) {
	backlog := ordering.NewBacklog()
	queue := newQueue("", newRateLimiter(), ordering.New(backlog, never))
	defer queue.ShutDown()
	a, b, c := cache.NewObjectName("default", "a"), cache.NewObjectName("default", "b"), cache.NewObjectName("default", "c")
	for i, key := range []cache.ObjectName{a, b, c} {
		backlog.Hold(key, fmt.Sprint(i+1))
	}
	backlog.Release(func(key cache.ObjectName) {
		if key == c {
			queue.Add(a)
		}
		queue.Add(key)
	})
	var got []cache.ObjectName
	for queue.Len() > 0 {
		key, _ := queue.Get()
		got = append(got, key)
		queue.Done(key)
	}
	if diff := cmp.Diff([]cache.ObjectName{a, c, b}, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}
