// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ordering

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// change pushes a key because of an event.
func change(q *Queue, key cache.ObjectName) {
	q.Hold(key)
	q.Push(key)
}

// TestBacklogIsNotStarved has one key that changes constantly.
func TestBacklogIsNotStarved(t *testing.T) {
	queue := New()
	busy, old := cache.NewObjectName("default", "busy"), cache.NewObjectName("default", "old")
	if !queue.Hold(old) {
		t.Error("a key was not held before the workers started")
	}
	queue.Release(queue.Push)
	if queue.Hold(busy) {
		t.Error("a key was held after the workers have started")
	}
	change(queue, busy)
	for i := range LaterShare {
		if queue.Len() != 2 {
			t.Errorf("%d keys wait, want 2", queue.Len())
		}
		if queue.Pop() == old {
			t.Logf("after %d other keys", i)
			change(queue, old)
			if got := []cache.ObjectName{queue.Pop(), queue.Pop()}; got[0] != busy || got[1] != old {
				t.Errorf("then %v, want %v and %v", got, busy, old)
			}
			return
		}
		change(queue, busy)
	}
	t.Errorf("no key of the backlog is among %d keys", LaterShare)
}

func TestRequeuedKeysComeAfterChanges(t *testing.T) {
	queue := New()
	queue.Release(nil)
	key := func(name string) cache.ObjectName { return cache.NewObjectName("default", name) }
	for _, name := range []string{"a", "b", "c", "d", "e"} { // their syncs begin
		change(queue, key(name))
		queue.Pop()
	}
	queue.Hold(key("d")) // changes during its sync
	for _, name := range []string{"a", "b", "c", "d"} {
		queue.Synced(key(name), true)
	}
	queue.Synced(key("e"), false)
	for _, name := range []string{"a", "b", "c", "d", "e"} { // again; e is retried
		queue.Push(key(name))
	}
	change(queue, key("x"))
	queue.Hold(key("b")) // changes while it waits
	queue.Touch(key("b"))
	queue.Touch(key("c"))
	for i, want := range []string{"d", "e", "x", "b", "a", "c"} {
		if got := queue.Pop().Name; got != want {
			t.Errorf("key %d is %s, want %s", i, got, want)
		}
	}
	if queue.Len() != 0 {
		t.Errorf("%d keys are left", queue.Len())
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	queue := New()
	for i := range 3 {
		queue.Hold(cache.NewObjectName("large", fmt.Sprint("old-", i)))
	}
	queue.Hold(cache.NewObjectName("small", "old"))
	queue.Release(queue.Push)
	for i := range 3 {
		queue.Push(cache.NewObjectName("large", fmt.Sprint("new-", i)))
	}
	queue.Push(cache.NewObjectName("small", "new"))
	for i, want := range []string{"large/new-0", "small/new", "large/new-1", "large/new-2"} {
		if got := queue.Pop().String(); got != want {
			t.Errorf("key %d is %s, want %s", i, got, want)
		}
	}
	var old []string // namespaces; which one is first is random
	for queue.Len() > 0 {
		old = append(old, queue.Pop().Namespace)
	}
	if i := slices.Index(old, "small"); len(old) != 4 || i < 0 || i > 1 {
		t.Errorf("the backlog was taken in the order %v, want 4 keys, that of small among the first two", old)
	}
}

// TestNoNamespaceStarves pops keys while others are added at random, most of them in one
// namespace.
func TestNoNamespaceStarves(t *testing.T) {
	const namespaces = 8
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		key := func() cache.ObjectName {
			return cache.NewObjectName(fmt.Sprint(max(0, random.IntN(2*namespaces)-namespaces)), fmt.Sprint(random.IntN(50)))
		}
		queue := New()
		// A namespace waits at most for all others. One pop in LaterShare takes from the
		// backlog, or all but one.
		old := &waiting{keys: sets.New[cache.ObjectName](), longest: namespaces * LaterShare}
		changed := &waiting{keys: sets.New[cache.ObjectName](), longest: namespaces*LaterShare/(LaterShare-1) + 1}
		for range random.IntN(200) {
			k := key()
			queue.Hold(k)
			old.keys.Insert(k)
		}
		queue.Release(queue.Push)
		for step := 0; step < 500 || queue.Len() > 0; step++ {
			if k := key(); step < 500 && random.IntN(3) > 0 {
				if old.keys.Has(k) || changed.keys.Has(k) {
					queue.Hold(k)
					queue.Touch(k)
				} else {
					change(queue, k)
				}
				old.keys.Delete(k)
				changed.keys.Insert(k)
				continue
			}
			if want := len(old.keys) + len(changed.keys); queue.Len() != want {
				t.Fatalf("seed %d: %d keys, want %d", seed, queue.Len(), want)
			}
			if queue.Len() == 0 {
				continue
			}
			popped := queue.Pop()
			if !old.keys.Has(popped) && !changed.keys.Has(popped) {
				t.Fatalf("seed %d: %s is not in the queue", seed, popped)
			}
			for which, w := range map[string]*waiting{"backlog": old, "changed keys": changed} {
				if starved := w.pop(popped); starved != "" {
					t.Fatalf("seed %d: namespace %s has waited for %d pops with %s", seed, starved, w.longest, which)
				}
			}
		}
		if n := len(old.keys) + len(changed.keys); n > 0 {
			t.Fatalf("seed %d: %d keys were lost", seed, n)
		}
	}
}

// waiting tracks the keys expected in one part of a queue.
type waiting struct {
	keys    sets.Set[cache.ObjectName]
	longest int            // maximum number of pops that a namespace may wait
	pops    map[string]int // number of pops that each namespace has waited
}

// pop removes a popped key, and returns a namespace that has waited too long.
func (w *waiting) pop(popped cache.ObjectName) (starved string) {
	waited := map[string]int{}
	for key := range w.keys {
		waited[key.Namespace] = w.pops[key.Namespace] + 1
	}
	if w.keys.Has(popped) {
		waited[popped.Namespace] = 0
		w.keys.Delete(popped)
	}
	w.pops = waited
	for namespace, pops := range waited {
		if pops > w.longest {
			return namespace
		}
	}
	return ""
}
