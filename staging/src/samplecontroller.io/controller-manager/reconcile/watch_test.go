// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// expectEnqueued checks which keys were enqueued since the last check.
func expectEnqueued(t *testing.T, s *syncs, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.enqueued()); diff != "" {
		t.Errorf("enqueued %s (-want +got):\n%s", when, diff)
	}
	s.reset()
}

func TestForEnqueuesObject(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
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

func TestWatchEnqueuesOwners(t *testing.T) {
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
		expectEnqueued(t, &s, "by a change of the owner, the old and the new owner", "default/a", "default/d")
		b.server.Modify(configMap("foo", "d", "e"))
		expectEnqueued(t, &s, "by an added owner, both owners once", "default/d", "default/e")
		b.server.Modify(configMap("foo", "d"))
		expectEnqueued(t, &s, "by the removal of one of two owners, both", "default/d", "default/e")
		b.server.Modify(configMap("foo"))
		expectEnqueued(t, &s, "by the removal of the owner, the old owner", "default/d")
		b.server.Modify(configMap("foo", "a"))
		expectEnqueued(t, &s, "by an adoption, the new owner", "default/a")
		b.server.Delete(configMap("foo", "a"))
		expectEnqueued(t, &s, "by a deletion", "default/a")
	})
}

func TestWatchChangesFiltersEvents(t *testing.T) {
	ownersDiffer := func(before, now *corev1.ConfigMap) bool {
		return before == nil || now == nil || !slices.Equal(owners(before), owners(now))
	}
	isGone := func(_, now *corev1.ConfigMap) bool { return now == nil }
	for name, tc := range map[string]struct {
		concerns                            func(before, now *corev1.ConfigMap) bool
		listed, unchanged, changed, deleted []string
	}{
		"changes of the owner": {ownersDiffer, []string{"default/a"}, nil, []string{"default/a", "default/b"}, []string{"default/b"}},
		"deletions":            {isGone, nil, nil, nil, []string{"default/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				b.server.Add(configMap("foo", "a"))
				b.start(b.informer)
				var s syncs
				l := New(loopName, s.sync)
				WatchChanges(l, b.informer, tc.concerns, owners)
				defer b.run(l, 1)()

				expectEnqueued(t, &s, "by the initial list", tc.listed...)
				b.server.Modify(configMap("foo", "a"))
				expectEnqueued(t, &s, "by a change of something else", tc.unchanged...)
				b.server.Modify(configMap("foo", "b"))
				expectEnqueued(t, &s, "by a change of the owner", tc.changed...)
				b.server.Delete(configMap("foo", "b"))
				expectEnqueued(t, &s, "by a deletion", tc.deleted...)
			})
		})
	}
}

func TestSeveralWatchesEnqueueKeyOnce(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		others := newInformer(b.server, 0)
		b.server.Add(configMap("foo", "foo"))
		b.start(b.informer)
		b.start(others)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		Watch(l, others, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial lists", "default/foo")
	})
}

// missedDeletion deletes an object while the watch is broken, so that only the relist shows
// the deletion.
func missedDeletion(b *bubble, c *corev1.ConfigMap) {
	time.Sleep(2 * time.Second) // reflectors back off if a watch ends at once
	b.server.DeleteDropWatch(c)
	b.server.ResetWatch()
	time.Sleep(time.Minute)
}

func TestMissedDeletionEnqueuesObjectAndOwners(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial list", "default/a", "default/foo")

		missedDeletion(b, configMap("foo", "a"))
		expectEnqueued(t, &s, "by the relist", "default/a", "default/foo")
	})
}

func TestResyncEnqueuesNothing(t *testing.T) {
	inBubble(t, time.Minute, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		Watch(l, b.informer, owners)
		defer b.run(l, 1)()
		expectEnqueued(t, &s, "by the initial list", "default/a", "default/foo")

		time.Sleep(time.Minute + time.Second)
		expectEnqueued(t, &s, "by the resync")
	})
}

// A relist repeats every object. Unchanged objects enqueue nothing.
func TestRelistEnqueuesOnlyChanges(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("same", "a"))
		b.server.Add(configMap("changed", "b"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
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
