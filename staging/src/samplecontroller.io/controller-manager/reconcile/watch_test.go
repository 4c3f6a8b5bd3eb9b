// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// expectEnqueued checks which keys were enqueued since the last check.
func expectEnqueued(t *testing.T, s *syncs, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.enqueued()); diff != "" {
		t.Errorf("enqueued %s (-want +got):\n%s", when, diff)
	}
	s.reset()
}

func TestForWakesTheObjectItself(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		defer b.run(l, 1)()

		expectEnqueued(t, &s, "by the initial list", "default/bar", "default/foo")
		b.server.Add(configMap("new"))
		expectEnqueued(t, &s, "by an addition", "default/new")
		b.server.Modify(configMap("foo", "changed"))
		expectEnqueued(t, &s, "by a change", "default/foo")
		b.server.Delete(configMap("foo"))
		expectEnqueued(t, &s, "by a deletion", "default/foo")
	})
}

func TestWatchWakesWhomTheObjectConcerns(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.server.Add(configMap("orphan"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()

		expectEnqueued(t, &s, "by the initial list", "default/a")
		b.server.Add(configMap("new", "b", "c"))
		expectEnqueued(t, &s, "by an addition", "default/b", "default/c")
		b.server.Modify(configMap("foo", "d"))
		expectEnqueued(t, &s, "by a change of hands, the old and the new owner", "default/a", "default/d")
		b.server.Modify(configMap("foo", "d", "e"))
		expectEnqueued(t, &s, "by a change under the same owner, it and the new one, once", "default/d", "default/e")
		b.server.Modify(configMap("foo", "d"))
		expectEnqueued(t, &s, "when one of two let go, both", "default/d", "default/e")
		b.server.Modify(configMap("foo"))
		expectEnqueued(t, &s, "when it was let go, the old owner", "default/d")
		b.server.Modify(configMap("foo", "a"))
		expectEnqueued(t, &s, "when it was adopted, the new owner", "default/a")
		b.server.Delete(configMap("foo", "a"))
		expectEnqueued(t, &s, "by a deletion", "default/a")
	})
}

func TestWatchChangesMindsOnlyUpdatesThatConcern(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchChanges(l, b.informer, func(oldObj, newObj *corev1.ConfigMap) bool {
			return !slices.Equal(owners(oldObj), owners(newObj))
		}, owners)
		defer b.run(l, 1)()

		expectEnqueued(t, &s, "by the initial list", "default/a")
		b.server.Modify(configMap("foo", "a"))
		expectEnqueued(t, &s, "by a change that does not concern")
		b.server.Modify(configMap("foo", "b"))
		expectEnqueued(t, &s, "by one that does", "default/a", "default/b")
		b.server.Delete(configMap("foo", "b"))
		expectEnqueued(t, &s, "by a deletion", "default/b")
	})
}

func TestWatchDeletionsMindsOnlyDeletions(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchDeletions(l, b.informer, owners)
		defer b.run(l, 1)()

		expectEnqueued(t, &s, "by the initial list")
		b.server.Modify(configMap("foo", "b"))
		expectEnqueued(t, &s, "by a change")
		b.server.Delete(configMap("foo", "b"))
		expectEnqueued(t, &s, "by a deletion", "default/b")
	})
}

func TestSeveralWatchesWakeOneKeyOnce(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		others := newInformer(b.server, 0)
		b.server.Add(configMap("foo", "foo"))
		b.start(b.informer)
		b.start(others)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		Watch(l, others, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial lists", "default/foo")
	})
}

// missedDeletion deletes an object while the watch is broken, so that only the
// relist shows that it is gone.
func missedDeletion(b *bubble, c *corev1.ConfigMap) {
	time.Sleep(2 * time.Second) // a watch that ends at once is an error, from which reflectors back off
	b.server.DeleteDropWatch(c)
	b.server.ResetWatch()
	time.Sleep(time.Minute)
}

func TestADeletionThatWasMissedWakesTheObjectAndWhomItConcerned(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial list", "default/a", "default/foo")

		missedDeletion(b, configMap("foo", "a"))
		expectEnqueued(t, &s, "by the relist", "default/a", "default/foo")
	})
}

func TestATombstoneWithoutObjectWakesTheObjectAlone(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()

		// Of an object whose last state was lost the key is all that is known.
		lost := cache.DeletedObject[*corev1.ConfigMap]{FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "default/foo"}}
		for _, handler := range b.informer.handlers {
			handler.OnDelete(lost)
		}
		expectEnqueued(t, &s, "by the tombstone", "default/foo")
	})
}

func TestResyncsAreDroppedUnlessAskedFor(t *testing.T) {
	tests := map[string]struct {
		opts []Option
		want []string
	}{
		"by default":        {want: nil},
		"not asked for":     {opts: []Option{WithResyncs(false)}, want: nil},
		"asked for, at all": {opts: []Option{WithResyncs(true)}, want: []string{"default/a", "default/foo"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, time.Minute, func(b *bubble) {
				b.server.Add(configMap("foo", "a"))
				b.start(b.informer)
				var s syncs
				l := New(loopName, s.sync, tc.opts...)
				For(l, b.informer)
				Watch(l, b.informer, owners)
				defer b.run(l, 1)()
				expectEnqueued(t, &s, "by the initial list", "default/a", "default/foo")

				time.Sleep(time.Minute + time.Second)
				expectEnqueued(t, &s, "by the resync", tc.want...)
			})
		})
	}
}

// A relist repeats every object; what has not changed enqueues nothing.
func TestARelistWakesOnlyWhatChanged(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("same", "a"))
		b.server.Add(configMap("changed", "b"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		For(l, b.informer)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial list", "default/a", "default/b", "default/changed", "default/same")

		time.Sleep(2 * time.Second)
		b.server.ModifyDropWatch(configMap("changed", "c"))
		b.server.ResetWatch()
		time.Sleep(time.Minute)
		expectEnqueued(t, &s, "by the relist", "default/b", "default/c", "default/changed")
	})
}
