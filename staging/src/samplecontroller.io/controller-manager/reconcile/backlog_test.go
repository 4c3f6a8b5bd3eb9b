// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/controller-manager/internal/ordering"
)

// TestChangesAreNotDelayedByBacklog gives ten workers a backlog of 5,000 keys that take 20 ms
// each, while a user changes one key every 50 ms. It does the same with the default queue, to
// show that the order is needed.
func TestChangesAreNotDelayedByBacklog(t *testing.T) {
	const keys, workers, takes, every = 5000, 10, 20 * time.Millisecond, 50 * time.Millisecond
	alone := keys / workers * takes // duration without changes

	waits, lasted := editsDuringBacklog(t, func(o *ordering.Queue) workqueue.Queue[cache.ObjectName] { return o }, keys,
		workers, takes, every)
	t.Logf("in order: %d edits waited %v in the median and at most %v; the backlog took %v, and %v without them", len(waits), waits[len(waits)/2], waits[len(waits)-1], lasted, alone)
	if most := waits[len(waits)-1]; most > takes {
		t.Errorf("an edit waited %v, want at most %v, which is one sync", most, takes)
	}
	if most := alone + time.Duration(len(waits)+workers)*takes/workers; lasted > most {
		t.Errorf("the backlog took %v, want at most %v: the edits must add only their own work", lasted, most)
	}

	waits, lasted = editsDuringBacklog(t, func(*ordering.Queue) workqueue.Queue[cache.ObjectName] {
		return workqueue.DefaultQueue[cache.ObjectName]()
	}, keys, workers, takes, every)
	t.Logf("default queue: %d edits waited %v in the median and at most %v; the backlog took %v", len(waits), waits[len(waits)/2], waits[len(waits)-1], lasted)
	if got := waits[len(waits)/2]; got < 100*takes {
		t.Errorf("with the default queue, an edit waited only %v in the median: the order is not needed", got)
	}
}

// editsDuringBacklog returns how long edits during a backlog waited, sorted, and how long the
// backlog took. An edit waits from when a sync of its key that runs has ended.
func editsDuringBacklog(t *testing.T, queue func(*ordering.Queue) workqueue.Queue[cache.ObjectName], keys, workers int,
	takes, every time.Duration) (waits []time.Duration, lasted time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		key := func(i int) cache.ObjectName { return cache.NewObjectName("default", fmt.Sprintf("foo-%04d", i)) }
		var mutex sync.Mutex
		edited := map[cache.ObjectName]time.Time{}
		left := map[cache.ObjectName]bool{} // of the backlog
		finished := make(chan struct{})
		look := func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			mutex.Lock()
			if at, ok := edited[key]; ok {
				waits = append(waits, time.Since(at))
				delete(edited, key)
			}
			if delete(left, key); len(left) == 0 {
				select {
				case <-finished:
				default:
					close(finished)
				}
			}
			mutex.Unlock()
			time.Sleep(takes)
			mutex.Lock()
			defer mutex.Unlock()
			if _, ok := edited[key]; ok {
				edited[key] = time.Now() // it could not be synced again any earlier
			}
			return 0, nil
		}
		l := New(loopName, look)
		l.tracker.work()
		order := ordering.New()
		w := newWorker(l, order, queue(order))
		for i := range keys {
			left[key(i)] = true
			order.Hold(key(i))
		}
		began := time.Now()
		order.Release(w.queue.Add)
		stop := w.begin(t.Context(), workers)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				name := key(i * 7919 % keys) // each key once, in mixed order
				mutex.Lock()
				edited[name] = time.Now()
				mutex.Unlock()
				order.Hold(name)
				w.queue.Add(name)
				continue
			case <-finished:
			}
			break
		}
		lasted = time.Since(began) + takes
		time.Sleep(time.Minute) // the rest is synced in this time
		stop()
		slices.Sort(waits)
	})
	return waits, lasted
}

// newWorker returns a worker that takes keys from the given queue.
func newWorker(l *Loop, order *ordering.Queue, queue workqueue.Queue[cache.ObjectName]) *worker {
	rateLimiter := newRateLimiter()
	return &worker{Loop: l, queue: newQueue("", rateLimiter, queue), order: order, rateLimiter: rateLimiter}
}

// begin starts goroutines that sync keys. stop shuts the queue down and waits for them.
func (w *worker) begin(ctx context.Context, workers int) (stop func()) {
	var all sync.WaitGroup
	w.workers = workers
	w.start(ctx, &all)
	return func() {
		w.queue.ShutDown()
		all.Wait()
	}
}

// TestLargeNamespaceDelaysNoOther enqueues 10,000 keys of one namespace, then one key in each
// of fifty others. Ten workers take 20 ms per key.
func TestLargeNamespaceDelaysNoOther(t *testing.T) {
	const large, small, workers, takes = 10000, 50, 10, 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		var waits []time.Duration
		began, synced, lasted := time.Now(), 0, time.Duration(0)
		look := func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			mutex.Lock()
			if key.Namespace != "large" {
				waits = append(waits, time.Since(began))
			}
			mutex.Unlock()
			time.Sleep(takes)
			mutex.Lock()
			defer mutex.Unlock()
			if synced++; synced == large+small {
				lasted = time.Since(began)
			}
			return 0, nil
		}
		l := New(loopName, look)
		l.tracker.work()
		order := ordering.New()
		w := newWorker(l, order, order)
		for i := range large {
			w.queue.Add(cache.NewObjectName("large", fmt.Sprint(i)))
		}
		for i := range small {
			w.queue.Add(cache.NewObjectName(fmt.Sprint("small-", i), "a"))
		}
		stop := w.begin(t.Context(), workers)
		time.Sleep(time.Minute)
		stop()
		slices.Sort(waits)
		if len(waits) != small || waits[small-1] > 2*small/workers*takes {
			t.Errorf("%d small namespaces waited %v, want %d to wait at most %v", len(waits), waits, small, 2*small/workers*takes)
		}
		if want := (large + small) / workers * takes; lasted != want {
			t.Errorf("all took %v, want %v", lasted, want)
		}
		if n := len(l.tracker.keys); n > 0 {
			t.Errorf("%d keys are still tracked when all are synced", n)
		}
	})
}
