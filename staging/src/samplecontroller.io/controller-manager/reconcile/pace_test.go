// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

// paced is a Pace of one second with an object.
type paced struct {
	*testing.T
	*Pace
	clock *testingclock.FakePassiveClock
	key   cache.ObjectName
	uid   types.UID
}

func newPaced(t *testing.T) *paced {
	clock := testingclock.NewFakePassiveClock(time.Unix(1_767_225_600, 0))
	return &paced{t, NewPace(func() time.Duration { return time.Second }, clock), clock, cache.NewObjectName("default", "a"), "uid-a"}
}

func (p *paced) after(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

func (p *paced) wantWait(change Change, want time.Duration) {
	p.Helper()
	if got := p.Wait(p.key, p.uid, change); got != want {
		p.Errorf("Wait() = %v, want %v", got, want)
	}
}

// write writes a change that need not wait.
func (p *paced) write(change Change) {
	p.Helper()
	p.wantWait(change, 0)
	if err := p.Write(p.key, p.uid, change, func() error { return nil }); err != nil {
		p.Fatal(err)
	}
}

const ms = time.Millisecond

func TestProgressWaitsFromItsDiscovery(t *testing.T) {
	p := newPaced(t)
	p.wantWait(OnlyProgress, time.Second)
	p.after(400 * ms)
	p.wantWait(OnlyProgress, 600*ms)
	p.after(600 * ms)
	p.write(OnlyProgress)

	// It waits for an interval again, also long after the last write.
	p.wantWait(OnlyProgress, time.Second)
	p.UpToDate(p.key) // it was reverted
	p.after(time.Hour)
	p.wantWait(OnlyProgress, time.Second)
}

func TestFirstTransitionIsWrittenAtOnce(t *testing.T) {
	p := newPaced(t)
	p.wantWait(OnlyProgress, time.Second)
	p.after(400 * ms)
	p.write(Transition) // instead of the progress

	p.after(300 * ms)
	p.wantWait(Transition, 700*ms)
	p.after(700 * ms)
	p.write(Transition)

	p.after(time.Minute)
	p.wantWait(OnlyProgress, time.Second)
	p.after(time.Second)
	p.write(OnlyProgress)
	p.after(100 * ms)
	p.write(Transition) // a write of progress does not delay it
	p.after(100 * ms)
	p.wantWait(OnlyProgress, time.Second)
	p.wantWait(Transition, 900*ms)

	// The next transition may not follow progress as closely, until there was a break.
	p.after(time.Second)
	p.write(OnlyProgress)
	p.after(100 * ms)
	p.wantWait(Transition, 900*ms)
	p.after(900 * ms)
	p.write(Transition)
	p.after(2 * time.Second)
	p.write(Transition)
	p.wantWait(OnlyProgress, time.Second)
	p.after(time.Second)
	p.write(OnlyProgress)
	p.write(Transition)
}

// TestWritesAreBounded makes changes of all kinds for a minute, at random times.
func TestWritesAreBounded(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p, random := newPaced(t), rand.New(rand.NewPCG(seed, 0))
			const duration = time.Minute
			written, begin := 0, p.clock.Now()
			for p.clock.Now().Sub(begin) < duration {
				if change := Change(random.IntN(2)); p.Wait(p.key, p.uid, change) == 0 {
					p.write(change)
					written++
				}
				p.after(time.Duration(random.IntN(200)) * ms)
			}
			if most := int(duration/time.Second) + 2; written > most {
				t.Errorf("%d writes in %v, want at most %d", written, duration, most)
			}
			if wait := p.Wait(p.key, p.uid, OnlyProgress); wait > time.Second {
				t.Errorf("the last state waits for %v, want at most an interval", wait)
			}
		})
	}
}

func TestThrottling(t *testing.T) {
	p := newPaced(t)
	want := func(uid types.UID, want time.Duration) {
		t.Helper()
		if got := p.Throttled(p.key, uid); got != want {
			t.Errorf("Throttled(%q) = %v, want %v", uid, got, want)
		}
	}
	want("", 0)
	_ = p.Write(p.key, p.uid, Transition, func() error {
		want("", time.Second) // its event may come before the call returns
		want(p.uid, time.Second)
		want("uid-another", 0)
		return nil
	})
	p.after(300 * ms)
	want("", 700*ms)
	want(p.uid, 700*ms)
	want("uid-another", 0)
	p.Forget(p.key)
	want("", 0)
}

func TestFailedWriteIsNotCounted(t *testing.T) {
	p := newPaced(t)
	p.wantWait(OnlyProgress, time.Second)
	p.after(time.Second)
	failed := errors.New("down")
	if err := p.Write(p.key, p.uid, OnlyProgress, func() error { return failed }); err != failed {
		t.Errorf("Write() = %v, want %v", err, failed)
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.Write(p.key, p.uid, OnlyProgress, func() error { panic("bug") })
	}()
	if wait := p.Throttled(p.key, ""); wait > 0 {
		t.Errorf("throttled for %v after failed writes", wait)
	}
	if _, pending := p.pending[p.key]; !pending {
		t.Error("no change is pending, although no write has succeeded")
	}
	p.write(OnlyProgress)
	if _, pending := p.pending[p.key]; pending {
		t.Error("a change is pending, although it was written")
	}
}

func TestRecreatedObjectStartsAfresh(t *testing.T) {
	p := newPaced(t)
	p.write(Transition)
	p.after(100 * ms)
	p.wantWait(OnlyProgress, time.Second)
	p.after(100 * ms)
	p.uid = "uid-another"
	p.wantWait(OnlyProgress, time.Second)
	p.write(Transition)
	p.wantWait(Transition, time.Second)
}

func TestWithoutIntervalNothingWaits(t *testing.T) {
	p := newPaced(t)
	p.interval = func() time.Duration { return 0 }
	for _, change := range []Change{OnlyProgress, Transition, Transition} {
		p.write(change)
	}
	_ = p.Write(p.key, p.uid, Transition, func() error {
		if wait := p.Throttled(p.key, ""); wait > 0 {
			t.Errorf("throttled for %v during a write", wait)
		}
		return nil
	})
}

// TestIntervalChangesDuringWrite sets the interval to 0 while an object is being written.
func TestIntervalChangesDuringWrite(t *testing.T) {
	p := newPaced(t)
	interval := time.Second
	p.interval = func() time.Duration { return interval }
	if err := p.Write(p.key, p.uid, Transition, func() error { interval = 0; return nil }); err != nil {
		t.Fatal(err)
	}
	interval = time.Second
	if wait := p.Throttled(p.key, ""); wait > 0 {
		t.Errorf("throttled for %v after the write", wait)
	}
}

// TestIdleObjectsUseNoMemory writes many objects once, and then one of them again and again.
func TestIdleObjectsUseNoMemory(t *testing.T) {
	p := newPaced(t)
	for i := range 1000 {
		p.key.Name = fmt.Sprint(i)
		p.write(Transition)
	}
	if len(p.recent) != 1000 {
		t.Fatalf("%d written objects remembered, want all", len(p.recent))
	}
	for range 5 {
		p.after(time.Second)
		p.write(Transition)
	}
	if n := len(p.recent) + len(p.earlier) + len(p.pending); n > 2 {
		t.Errorf("%d entries, want only those of the last object", n)
	}
}

func TestPaceIsSafeForConcurrentUse(t *testing.T) {
	p := newPaced(t)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			key := cache.NewObjectName("default", fmt.Sprint(i))
			for range 100 {
				if p.Wait(key, "uid", Transition) == 0 {
					_ = p.Write(key, "uid", Transition, func() error { return nil })
				}
				p.Throttled(key, "")
				p.UpToDate(key)
			}
			p.Forget(key)
		})
	}
	running.Wait()
}
