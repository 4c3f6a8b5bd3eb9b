// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/ordering"
)

// BenchmarkProgress measures Progress of a loop with 10,000 keys. It holds the lock that each
// sync needs.
func BenchmarkProgress(b *testing.B) {
	const keys = 10_000
	l := New(loopName, nil)
	now, err := time.Now(), "no"
	for i := range keys {
		key := cache.NewObjectName("default", fmt.Sprintf("foo-%d", i))
		a := l.tracker.stateOf(key)
		switch i % 3 {
		case 0:
			a.waiting = now.Add(-time.Duration(i) * time.Millisecond) // each is among the first
		case 1:
			a.due, a.retries, a.err = now.Add(time.Hour-time.Duration(i)*time.Millisecond), 3, err
		default:
			a.due, a.retries, a.err = now.Add(time.Hour+time.Duration(i*7919%keys)*time.Millisecond), 3, err
		}
	}
	for _, limit := range []int{10, 200} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Progress(limit)
			}
		})
	}
	b.Run("one", func(b *testing.B) {
		key := cache.NewObjectName("default", "foo-7777")
		b.ReportAllocs()
		for b.Loop() {
			l.ProgressOf(key)
		}
	})
}

// BenchmarkKey measures the overhead of the loop per key, from the event to the end of an
// empty sync.
func BenchmarkKey(b *testing.B) {
	l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, nil })
	rateLimiter := newRateLimiter()
	order := ordering.New()
	queue := newQueue(loopName, rateLimiter, order)
	defer queue.ShutDown()
	w := &worker{Loop: l, queue: queue, order: order, rateLimiter: rateLimiter}
	l.tracker.work()
	key := cache.NewObjectName("default", "foo")
	b.ReportAllocs()
	for b.Loop() {
		l.tracker.enqueue(key, "Foo", time.Now())
		queue.Add(key)
		if !w.processNext(b.Context()) {
			b.Fatal("the queue is shut down")
		}
	}
}
