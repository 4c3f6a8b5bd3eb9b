// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

func TestWorkersChangeWhileLoopRuns(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var running, most, done atomic.Int32
		l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			done.Add(1)
			return 0, nil
		})
		WatchSelf(l, b.informer)
		defer b.run(l, 2)()
		keys := 0
		expect := func(workers int32) {
			t.Helper()
			most.Store(0)
			done.Store(0)
			for range 20 {
				keys++
				l.Enqueue(cache.NewObjectName("default", fmt.Sprint(keys)), "test")
			}
			time.Sleep(time.Minute)
			if most.Load() != workers || done.Load() != 20 {
				t.Errorf("%d keys were synced, at most %d at once, want 20 and %d", done.Load(), most.Load(), workers)
			}
		}
		expect(2)
		l.SetWorkers(5)
		synctest.Wait()
		expect(5)
		l.SetWorkers(1) // while all workers wait for a key
		synctest.Wait()
		expect(1)
		l.SetWorkers(3)
		l.SetWorkers(4)
		synctest.Wait()
		expect(4)
	})
}

func TestFewerWorkersFinishTheirSyncs(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var done atomic.Int32
		l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) {
			time.Sleep(time.Second)
			done.Add(1)
			return 0, nil
		})
		WatchSelf(l, b.informer)
		defer b.run(l, 4)()
		for i := range 12 {
			l.Enqueue(cache.NewObjectName("default", fmt.Sprint(i)), "test")
		}
		time.Sleep(500 * time.Millisecond)
		l.SetWorkers(2)
		time.Sleep(time.Second)
		if done.Load() != 4 {
			t.Errorf("%d syncs have ended after 1.5 s, want the 4 that had begun", done.Load())
		}
		time.Sleep(4 * time.Second)
		if done.Load() != 12 {
			t.Errorf("%d syncs have ended after 5.5 s, want all 12", done.Load())
		}
	})
}
