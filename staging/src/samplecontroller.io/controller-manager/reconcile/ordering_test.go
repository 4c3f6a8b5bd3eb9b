// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"strings"
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

func TestNewChangesComeBeforeBacklog(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.server.Add(configMap(name))
		}
		b.start(b.informer)
		s := syncs{result: func(string, int) (time.Duration, error) { time.Sleep(time.Second); return 0, nil }}
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		defer b.run(l, 1)()
		first := s.inOrder()[0] // is being synced
		other := "a"
		if first == "default/a" {
			other = "b"
		}
		b.server.Modify(configMap(other))
		b.server.Add(configMap("e"))
		b.server.Modify(configMap(strings.TrimPrefix(first, "default/")))
		time.Sleep(time.Minute)
		got := s.inOrder()
		if diff := cmp.Diff([]string{first, "default/" + other, "default/e", first}, got[:4]); diff != "" || len(got) != 6 {
			t.Errorf("synced %v, the first (-want +got):\n%s", got, diff)
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
		WatchSelf(l, b.informer)
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

// A key that is enqueued while the backlog is released comes once, and first.
func TestKeyEnqueuedDuringReleaseOfBacklog(t *testing.T) {
	order := ordering.New()
	queue := newQueue("", newRateLimiter(), order)
	defer queue.ShutDown()
	a, b, c := cache.NewObjectName("default", "a"), cache.NewObjectName("default", "b"), cache.NewObjectName("default", "c")
	for _, key := range []cache.ObjectName{a, b, c} {
		order.Hold(key)
	}
	var early cache.ObjectName
	order.Release(func(key cache.ObjectName) {
		if early == (cache.ObjectName{}) {
			early = a
			if key == a {
				early = b
			}
			order.Hold(early)
			queue.Add(early)
		}
		queue.Add(key)
	})
	var got []cache.ObjectName
	for queue.Len() > 0 {
		key, _ := queue.Get()
		got = append(got, key)
		queue.Done(key)
	}
	if len(got) != 3 || got[0] != early {
		t.Errorf("taken %v, want three keys, the first %s", got, early)
	}
}
