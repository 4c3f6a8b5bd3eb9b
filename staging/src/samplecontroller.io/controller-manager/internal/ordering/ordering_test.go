// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ordering

import (
	"testing"

	"k8s.io/client-go/tools/cache"
)

// TestBacklogIsNotStarved has a key that changes all the time.
func TestBacklogIsNotStarved(t *testing.T) {
	backlog := NewBacklog()
	queue := New(backlog)
	busy, old := cache.NewObjectName("default", "busy"), cache.NewObjectName("default", "old")
	if !backlog.Hold(old, "1") {
		t.Error("a key was not held before the workers started")
	}
	backlog.Release(queue.Push)
	if backlog.Hold(busy, "2") {
		t.Error("a key was held after the workers have started")
	}
	queue.Push(busy)
	for i := range BacklogShare {
		if queue.Len() != 2 {
			t.Errorf("%d keys wait, want 2", queue.Len())
		}
		if queue.Pop() == old {
			t.Logf("after %d of the others", i)
			queue.Push(old) // it is like the others now
			if got := []cache.ObjectName{queue.Pop(), queue.Pop()}; got[0] != busy || got[1] != old {
				t.Errorf("then %v, want %v and %v", got, busy, old)
			}
			return
		}
		queue.Push(busy)
	}
	t.Errorf("no key of the backlog is among %d keys", BacklogShare)
}
