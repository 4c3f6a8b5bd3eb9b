// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// store is a cache whose value is the resourceVersion that it has reached.
type store string

func (s *store) LastStoreSyncResourceVersion() string { return string(*s) }

// begins reports whether a sync may begin, and ends it.
func begins(w *ConsistencyStore, key cache.ObjectName) bool {
	if !w.begin(key) {
		return false
	}
	w.end(key)
	return true
}

func TestConcurrentSyncOfSameKeyWaits(t *testing.T) {
	var w ConsistencyStore
	key, other := cache.NewObjectName("default", "foo"), cache.NewObjectName("default", "bar")
	for _, step := range []struct {
		what string
		key  cache.ObjectName
		want bool
	}{
		{"a key", key, true},
		{"the same key", key, false},
		{"another key", other, true},
	} {
		if got := w.begin(step.key); got != step.want {
			t.Errorf("begin of %s = %v, want %v", step.what, got, step.want)
		}
	}
	w.end(key)
	if !w.begin(key) {
		t.Error("begin after end = false, want true")
	}
	w.end(key)
	w.end(other)
	if len(w.busy) > 0 {
		t.Errorf("%d keys are remembered, want none", len(w.busy))
	}
}

func TestWroteAtWaitsForVersion(t *testing.T) {
	tests := map[string]struct {
		written string
		cache   store
		want    bool
	}{
		"cache is behind":               {"12", "11", false},
		"cache is behind by a digit":    {"100", "99", false},
		"cache is up to date":           {"12", "12", true},
		"cache is ahead":                {"12", "13", true},
		"cache is ahead by a digit":     {"99", "100", true},
		"empty cache":                   {"12", "", true},
		"versions that are not numbers": {"abc", "abd", true},
		"write without a version":       {"", "11", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w ConsistencyStore
			key := cache.NewObjectName("default", "foo")
			w.WroteAt(key, &tc.cache, tc.written)
			if got := begins(&w, key); got != tc.want {
				t.Errorf("begin = %v, want %v", got, tc.want)
			}
			if got := w.Stale(key); (got == "") != tc.want {
				t.Errorf("Stale = %q, want a description: %v", got, !tc.want)
			}
		})
	}
}

func TestLaterWriteKeepsEarlierOne(t *testing.T) {
	var w ConsistencyStore
	key := cache.NewObjectName("default", "foo")
	late, current := store("10"), store("12")
	w.WroteAt(key, &late, "11")
	w.WroteAt(key, &current, "12")
	if begins(&w, key) {
		t.Error("begin = true, want false: the cache of the first write is stale")
	}
	late = "11"
	if !begins(&w, key) {
		t.Error("begin = false when both caches are up to date, want true")
	}
}

func TestWritesOfOtherKeysDoNotMatter(t *testing.T) {
	var w ConsistencyStore
	late := store("1")
	w.WroteAt(cache.NewObjectName("default", "foo"), &late, "2")
	if !begins(&w, cache.NewObjectName("default", "bar")) {
		t.Error("begin of another key = false, want true")
	}
}

func TestKeyWaitsForAllWritesInAllCaches(t *testing.T) {
	var w ConsistencyStore
	key := cache.NewObjectName("default", "foo")
	owner, owned := store("10"), store("10")
	w.WroteAt(key, &owner, "11")
	w.WroteAt(key, &owned, "12")
	w.WroteAt(key, &owned, "14")
	steps := []struct {
		owner, owned store
		want         bool
	}{
		{"10", "10", false},
		{"11", "10", false},
		{"10", "13", false}, // a version that was seen once is not waited for again
		{"10", "14", true},
		{"10", "10", true},
	}
	for _, step := range steps {
		owner, owned = step.owner, step.owned
		if got := begins(&w, key); got != step.want {
			t.Errorf("begin with caches at %s and %s = %v, want %v", owner, owned, got, step.want)
		}
	}
	if len(w.pending) > 0 {
		t.Errorf("%d keys are remembered, want none", len(w.pending))
	}
}

func TestEarlierWriteIsAwaitedInOtherCache(t *testing.T) {
	var w ConsistencyStore
	key := cache.NewObjectName("default", "foo")
	owner, owned := store("10"), store("12")
	w.WroteAt(key, &owner, "11")
	w.WroteAt(key, &owned, "12")
	if begins(&w, key) {
		t.Error("begin while the cache of the first write is stale = true, want false")
	}
	owner = "11"
	if !begins(&w, key) {
		t.Error("begin when all caches are up to date = false, want true")
	}
}

func TestConflictWaitsForAnotherVersion(t *testing.T) {
	object := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		cached *metav1.PartialObjectMetadata
		want   bool
	}{
		"the same version": {object("7"), false},
		"a newer version":  {object("8"), true},
		"deleted":          {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var w ConsistencyStore
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			if test.cached != nil {
				if err := store.Add(test.cached); err != nil {
					t.Fatal(err)
				}
			}
			key := cache.NewObjectName("default", "foo")
			w.Conflicted(key, store, object("7"))
			if got := begins(&w, key); got != test.want {
				t.Errorf("begin = %v, want %v", got, test.want)
			}
			if remembered := len(w.pending) > 0; remembered == test.want {
				t.Errorf("remembered: %v, want %v", remembered, !test.want)
			}
		})
	}
}

func TestStaleCacheIsAwaitedForLimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w ConsistencyStore
		key := cache.NewObjectName("default", "foo")
		broken := store("1")
		w.WroteAt(key, &broken, "2")
		time.Sleep(staleLimit)
		if begins(&w, key) {
			t.Errorf("begin after %v = true, want false", staleLimit)
		}
		time.Sleep(time.Nanosecond)
		if !begins(&w, key) {
			t.Errorf("begin after more than %v = false, want true", staleLimit)
		}
	})
}

func TestConsistencyStoreConcurrency(t *testing.T) {
	var w ConsistencyStore
	seen := store("1000")
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 100 {
				key := cache.NewObjectName("default", fmt.Sprint(worker, i%3))
				w.WroteAt(key, &seen, fmt.Sprint(i+1))
				if !begins(&w, key) {
					t.Errorf("begin(%s) = false, want true", key)
				}
			}
		})
	}
	wg.Wait()
}
