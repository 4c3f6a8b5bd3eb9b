// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

const testWriteTimeout = 3 * time.Second

var errGivenUp = errors.New("given up")

// link simulates a network link. It transmits one write after another; in addition, each write
// takes the latency.
type link struct {
	each, latency time.Duration
	hangs         func(key cache.ObjectName) bool // nil: no write hangs

	mutex         sync.Mutex
	busy          time.Time // time until which it is busy
	sent, givenUp int
}

// write sends one write for an object and returns when it is answered or has timed out.
func (l *link) write(ctx context.Context, key cache.ObjectName) error {
	l.mutex.Lock()
	now := time.Now()
	if l.busy.Before(now) {
		l.busy = now
	}
	l.busy = l.busy.Add(l.each)
	took := l.busy.Add(l.latency).Sub(now)
	if l.hangs != nil && l.hangs(key) {
		took = math.MaxInt64
	}
	l.sent++
	var err error
	if took >= testWriteTimeout {
		took, err = testWriteTimeout-time.Millisecond, errGivenUp // it was sent slightly late
		l.givenUp++
	}
	l.mutex.Unlock()
	end := RecordWrite(ctx, "patch", "configmaps")
	time.Sleep(took)
	end("written", took)
	return err
}

// loop returns a loop that sends this many writes per object. adapts enables adaptive workers.
func (l *link) loop(b *bubble, writes int, adapts bool) (loop *Loop, done func() int) {
	var mutex sync.Mutex
	settled := map[string]int{}
	var options []Option
	if adapts {
		options = append(options, WithAdaptiveWorkers(testWriteTimeout))
	}
	loop = New(loopName, func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		for range writes {
			if err := l.write(ctx, key); err != nil {
				return 0, err
			}
		}
		mutex.Lock()
		defer mutex.Unlock()
		settled[key.Name]++
		return 0, nil
	}, options...)
	For(loop, b.informer)
	return loop, func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(settled)
	}
}

// run runs loops that write for all objects, and returns how long that takes.
func (l *link) run(b *bubble, loops, objects, writes int, adapts bool) time.Duration {
	b.Helper()
	for i := range objects {
		b.server.Add(configMap(fmt.Sprintf("foo-%04d", i)))
	}
	b.start(b.informer)
	synctest.Wait()
	begin := time.Now()
	done := make([]func() int, loops)
	for i := range loops {
		var loop *Loop
		loop, done[i] = l.loop(b, writes, adapts)
		defer b.run(loop, 10)() // its error is always nil here
	}
	for i := range done {
		for done[i]() < objects {
			time.Sleep(10 * time.Millisecond)
			if time.Since(begin) > time.Hour {
				b.Fatalf("%d of %d objects are settled after an hour", done[i](), objects)
			}
		}
	}
	return time.Since(begin)
}

// TestSlowLinkWastesNoWrites shares a link that carries 4 to 16 writes per second among four
// loops.
func TestSlowLinkWastesNoWrites(t *testing.T) {
	for _, each := range []time.Duration{time.Second / 16, time.Second / 8, time.Second / 4} {
		t.Run(each.String(), func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				l := &link{each: each, latency: 300 * time.Millisecond}
				took := l.run(b, 4, 100, 2, true)
				b.Logf("%d of %d writes were given up in %v", l.givenUp, l.sent, took)
				if 20*l.givenUp > l.sent {
					b.Errorf("%d of %d writes were given up, want at most 5 %%", l.givenUp, l.sent)
				}
				if most := 4*100*2*each*11/10 + 5*time.Second; took > most {
					b.Errorf("it took %v, want at most %v: the link is idle", took, most)
				}
			})
		})
	}
}

// TestLatencyAloneDoesNotLimit compares the time for many objects with and without a limit.
func TestLatencyAloneDoesNotLimit(t *testing.T) {
	for _, latency := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 1000 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			var took [2]time.Duration
			for i, adapts := range []bool{false, true} {
				inBubble(t, 0, func(b *bubble) {
					l := &link{latency: latency}
					took[i] = l.run(b, 2, 1000, 2, adapts)
				})
			}
			if most := took[0] + 12*latency + 20*time.Millisecond; took[1] > most {
				t.Errorf("it took %v, want at most %v: the time without a limit plus 12 writes", took[1], most)
			}
		})
	}
}

// TestHangingWritesDoNotBlockOthers makes the writes of four in ten objects hang. Each is
// retried before new objects are tried.
func TestHangingWritesDoNotBlockOthers(t *testing.T) {
	var settled [2]int
	for i, adapts := range []bool{false, true} {
		inBubble(t, 0, func(b *bubble) {
			l := &link{latency: 5 * time.Millisecond, hangs: func(key cache.ObjectName) bool { return key.Name[len(key.Name)-1]%3 == 0 }}
			for i := range 300 {
				b.server.Add(configMap(fmt.Sprintf("foo-%04d", i)))
			}
			b.start(b.informer)
			synctest.Wait()
			loop, done := l.loop(b, 1, adapts)
			defer b.run(loop, 10)()
			time.Sleep(2 * time.Minute)
			settled[i] = done()
		})
	}
	if 2*settled[1] < settled[0] {
		t.Errorf("%d objects are settled, want at least half of the %d without a limit", settled[1], settled[0])
	}
	t.Logf("%d objects are settled, %d without a limit", settled[1], settled[0])
}

// TestStuckSyncsDoNotBlockOthers occupies all workers but one with syncs that never end and
// never write.
func TestStuckSyncsDoNotBlockOthers(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		end := make(chan struct{})
		var synced syncs
		loop := New(loopName, func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
			_, err := synced.sync(ctx, key)
			if key.Name < "foo-9" {
				<-end
			}
			return 0, err
		}, WithAdaptiveWorkers(testWriteTimeout))
		for i := range 10 {
			b.server.Add(configMap(fmt.Sprintf("foo-%d", i)))
		}
		b.start(b.informer)
		For(loop, b.informer)
		stop := b.run(loop, 10)
		time.Sleep(time.Second)
		if got := len(synced.enqueued()); got != 10 {
			b.Errorf("%d objects were synced, want 10", got)
		}
		close(end)
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// TestWaitingForLimitEndsWithLoop stops a loop while most of its workers wait.
func TestWaitingForLimitEndsWithLoop(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		l := &link{latency: time.Second}
		for i := range 20 {
			b.server.Add(configMap(fmt.Sprintf("foo-%04d", i)))
		}
		b.start(b.informer)
		loop, _ := l.loop(b, 1, true)
		stop := b.run(loop, 10)
		begin := time.Now()
		if err := stop(); err != nil {
			b.Error(err)
		}
		if took := time.Since(begin); took != time.Second || l.sent != minSyncs {
			b.Errorf("it ended after %v with %d writes, want only the %d that had begun", took, l.sent, minSyncs)
		}
		stop = b.run(loop, 10) // all slots are free again
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil || l.sent != minSyncs+20 {
			b.Errorf("%d writes after another run, error %v, want %d", l.sent, err, minSyncs+20)
		}
	})
}

func TestDecide(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		now           int
		base, fastest time.Duration
		want          int
	}{
		"no waiting":                           {4, 5 * ms, 5 * ms, 8},
		"waits a quarter of the time":          {8, 200 * ms, 900 * ms, 8},
		"waits an eighth of the time":          {4, 200 * ms, 550 * ms, 8},
		"waits half of the time":               {8, 200 * ms, 1600 * ms, 4},
		"only latency":                         {8, 700 * ms, 700 * ms, 16},
		"latency of a third of the timeout":    {8, 1000 * ms, 1000 * ms, 12},
		"latency of two thirds of the timeout": {8, 2000 * ms, 2000 * ms, 6},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(test.now, testWriteTimeout, test.base, test.fastest); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
