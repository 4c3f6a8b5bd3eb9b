// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestNoHandlerRunsAfterRun(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo", "a"))
		b.start(b.informer)
		var calls atomic.Int32
		l := New(loopName, new(syncs).sync)
		Watch(l, b.informer, func(c *corev1.ConfigMap) []cache.ObjectName {
			defer calls.Add(1)
			if len(c.Data) > 1 {
				time.Sleep(time.Minute)
			}
			return owners(c)
		})
		stop := b.run(l, 1)
		b.server.Add(configMap("bar", "a", "b"))
		synctest.Wait() // until the handler is running
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := calls.Load(); got != 2 {
			t.Errorf("%d handler calls had ended when Run returned, want 2", got)
		}
		b.server.Modify(configMap("foo", "b"))
		time.Sleep(time.Hour)
		if got := calls.Load(); got != 2 {
			t.Errorf("%d handler calls after Run returned, want none", got-2)
		}
	})
}

func TestSecondRunBeginsWithFullResync(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		for _, term := range []string{"first", "second", "third"} {
			stop := b.run(l, 1)
			expectEnqueued(t, &s, "in the "+term+" term", "default/bar", "default/foo")
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
		b.server.Modify(configMap("foo"))
		expectEnqueued(t, &s, "between terms")
	})
}

func TestStopWaitsForSyncsInProgress(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.server.Add(configMap(name))
		}
		b.start(b.informer)
		var begun, finished atomic.Int32
		l := New(loopName, func(ctx context.Context, _ cache.ObjectName) (time.Duration, error) {
			begun.Add(1)
			select {
			case <-ctx.Done():
				t.Errorf("the context of a sync ended: %v", context.Cause(ctx))
			case <-time.After(time.Minute):
				finished.Add(1)
			}
			return 0, nil
		})
		WatchSelf(l, b.informer)
		stop := b.run(l, 2)
		time.Sleep(time.Second)

		asked := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(asked); took != 59*time.Second {
			t.Errorf("Run returned %v after it was stopped, want 59s: the remaining time of the syncs", took)
		}
		// The other two keys are left to the next Run.
		if begun.Load() != 2 || finished.Load() != 2 {
			t.Errorf("%d syncs begun and %d finished, want 2 of each", begun.Load(), finished.Load())
		}
	})
}

func TestWorkersSyncDifferentKeysConcurrently(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		b.start(b.informer)
		var s syncs
		s.result = func(string, int) (time.Duration, error) { time.Sleep(time.Minute); return 0, nil }
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		defer b.run(l, 3)()
		expectEnqueued(t, &s, "at once", "default/bar", "default/foo")

		b.server.Modify(configMap("foo"))
		b.server.Modify(configMap("foo"))
		expectEnqueued(t, &s, "during its sync")
		time.Sleep(time.Minute)
		expectEnqueued(t, &s, "after its sync, once", "default/foo")
		time.Sleep(time.Minute)
		expectEnqueued(t, &s, "after that")
	})
}

func TestSyncTimeout(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var o outcomes
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		l := New(loopName, func(ctx context.Context, _ cache.ObjectName) (time.Duration, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, WithTimeout(10*time.Second), WithObserver(o.observe))
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if diff := cmp.Diff([]Result{ResultTimeout}, o.results("default/foo")); diff != "" {
			t.Fatalf("results (-want +got):\n%s", diff)
		}
		if got := o.all[0]; got.Duration.Duration != 10*time.Second || !errors.Is(got.Err, context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v, want 10s and %v", got.Duration, got.Err, context.DeadlineExceeded)
		}
	})
}
