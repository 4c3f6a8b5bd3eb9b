// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

var (
	foo = cache.NewObjectName("default", "foo")
	bar = cache.NewObjectName("default", "bar")
)

// all is a limit that no test reaches.
const all = 1000

// expectEntries compares queue entries.
func expectEntries(t *testing.T, what string, got Entries, want ...Entry) {
	t.Helper()
	if got.Total != len(want) {
		t.Errorf("%s: %d in all, want %d", what, got.Total, len(want))
	}
	if diff := cmp.Diff(want, got.First, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestProgressOfRunningAndWaitingKeys(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		s := syncs{result: func(string, int) (time.Duration, error) { time.Sleep(time.Minute); return 0, nil }}
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		before := l.Progress(all)
		if before.Working || before.Blocker != nil {
			t.Errorf("before Run: working %t, blocker %v, want neither", before.Working, before.Blocker)
		}
		stop := b.run(l, 1)
		began := time.Now()
		b.server.Add(configMap("foo"))
		synctest.Wait()
		expectEntries(t, "waiting when all run", l.Progress(all).Waiting)
		time.Sleep(time.Second)
		b.server.Add(configMap("bar"))
		b.server.Modify(configMap("foo"))
		synctest.Wait()
		time.Sleep(time.Second)

		p := l.Progress(all)
		if !p.Working || !p.Since.Equal(began) {
			t.Errorf("working %t since %v, want since %v", p.Working, p.Since, began)
		}
		expectEntries(t, "running", p.Running, Entry{Key: foo.String(), Trigger: "*v1.ConfigMap added", Time: began})
		// both were enqueued at the same time
		slices.SortFunc(p.Waiting.First, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
		expectEntries(t, "waiting", p.Waiting,
			Entry{Key: bar.String(), Trigger: "*v1.ConfigMap added", Time: began.Add(time.Second)},
			Entry{Key: foo.String(), Trigger: "*v1.ConfigMap changed", Time: began.Add(time.Second)})

		time.Sleep(5 * time.Minute)
		p = l.Progress(all)
		expectEntries(t, "running when done", p.Running)
		expectEntries(t, "waiting when done", p.Waiting)
		expectEntries(t, "delayed when done", p.Delayed)
		if want := began.Add(3 * time.Minute); !p.LastSuccess.Equal(want) {
			t.Errorf("last success %v, want %v", p.LastSuccess, want)
		}
		var recent []string
		for _, o := range p.Recent {
			recent = append(recent, fmt.Sprint(strings.TrimPrefix(o.Key, "default/"), " by ", o.Trigger, " at ", o.Began.Sub(began), " done after ",
				o.EventToDone))
		}
		want := []string{"foo by *v1.ConfigMap added at 0s done after 1m0s"}
		if diff := cmp.Diff(want, recent[2:]); diff != "" {
			t.Errorf("first sync (-want +got):\n%s", diff)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if after := l.Progress(all); after.Working || !after.Since.Equal(time.Now()) || len(after.Recent) != 3 {
			t.Errorf("after Run: working %t since %v, %d recent syncs, want false since now, and 3", after.Working, after.Since, len(after.Recent))
		}
	})
}

func TestProgressOfFailingKeys(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var broken atomic.Bool
		broken.Store(true)
		s := syncs{result: func(key string, _ int) (time.Duration, error) {
			if broken.Load() && key == foo.String() {
				return 0, errBroken
			}
			return 0, nil
		}}
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		defer b.run(l, 1)()
		began := time.Now()
		b.server.Add(configMap("foo"))
		b.server.Add(configMap("bar"))
		time.Sleep(20 * time.Millisecond) // tries at 0, 5 and 15 ms; the next at 35

		p := l.Progress(all)
		expectEntries(t, "delayed", p.Delayed, Entry{Key: foo.String(), Trigger: "retry", Time: began.Add(35 * time.Millisecond),
			Retries: 3, Error: "broken"})
		if p.Failing != 1 || len(p.Failures) != 3 {
			t.Errorf("%d keys fail, %d failures, want 1 and 3", p.Failing, len(p.Failures))
		}
		of := l.ProgressOf(foo)
		expectEntries(t, "delayed, of the failing key", of.Delayed, p.Delayed.First...)
		if len(of.Recent) != 3 || len(of.Failures) != 3 {
			t.Errorf("%d recent syncs, %d failures of the failing key, want 3 of each", len(of.Recent), len(of.Failures))
		}
		if of = l.ProgressOf(bar); of.Delayed.Total != 0 || len(of.Recent) != 1 || len(of.Failures) != 0 {
			t.Errorf("of the other key %d delayed, %d recent syncs, %d failures, want only one recent", of.Delayed.Total, len(of.Recent), len(of.Failures))
		}
		broken.Store(false)
		time.Sleep(time.Hour)
		p = l.Progress(all)
		expectEntries(t, "delayed after the repair", p.Delayed)
		if p.Failing != 0 {
			t.Errorf("%d keys fail after the repair, want none", p.Failing)
		}
		if got := p.Recent[0]; got.Key != foo.String() || got.Trigger != "retry" || got.EventToDone != 35*time.Millisecond {
			t.Errorf("last sync: %+v, want a retry of %v, 35ms after the event", got, foo)
		}
	})
}

// A key counts as failing until it has succeeded, even while it is retried.
func TestRetryingKeyCountsAsFailing(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			time.Sleep(time.Second)
			if nth == 1 {
				return 0, errBroken
			}
			return 0, nil
		}}
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		defer b.run(l, 1)()
		b.server.Add(configMap("foo"))
		for _, want := range []struct {
			running, failing int
		}{{1, 0}, {1, 1}, {0, 0}} {
			synctest.Wait()
			if p := l.Progress(all); p.Running.Total != want.running || p.Failing != want.failing {
				t.Errorf("%d keys run, %d fail, want %d and %d", p.Running.Total, p.Failing, want.running, want.failing)
			}
			time.Sleep(time.Second + 100*time.Millisecond) // past the end of the sync, into the next
		}
	})
}

// An event may cause a sync before the retry is due. The retry comes nevertheless.
func TestOvertakenRetryHasTrigger(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth == 1 {
				return 0, errBroken
			}
			return 0, nil
		}}
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		defer b.run(l, 1)()
		b.server.Add(configMap("foo"))
		time.Sleep(time.Millisecond) // the retry is due at 5 ms
		b.server.Modify(configMap("foo"))
		time.Sleep(time.Minute)
		var triggers []string
		for _, o := range l.Progress(all).Recent {
			triggers = append(triggers, o.Trigger)
		}
		if diff := cmp.Diff([]string{"retry", "*v1.ConfigMap changed", "*v1.ConfigMap added"}, triggers); diff != "" {
			t.Errorf("triggers, the newest first (-want +got):\n%s", diff)
		}
	})
}

func TestObjectsFoundAtStartAreNotEvents(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var o outcomes
		var s syncs
		s.result = func(string, int) (time.Duration, error) { time.Sleep(time.Second); return 0, nil }
		syncOne(b, &s, time.Hour, WithObserver(o.observe))
		if got := o.all[0]; got.Trigger != "start" || got.EventToDone != 0 {
			t.Errorf("trigger %q, EventToDone %v, want start and 0", got.Trigger, got.EventToDone)
		}
	})
}

func TestProgressIsBounded(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, errBroken })
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		began := time.Now()
		for i := range 500 {
			b.server.Add(configMap(fmt.Sprint(i)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		p := l.Progress(7)
		if p.Delayed.Total != 500 || len(p.Delayed.First) != 7 || len(p.Recent) != 7 || len(p.Failures) != 7 {
			t.Errorf("%d delayed, %d of them listed, %d recent, %d failures, want 500 and 7 of each",
				p.Delayed.Total, len(p.Delayed.First), len(p.Recent), len(p.Failures))
		}
		for i, entry := range p.Delayed.First {
			if want := fmt.Sprint("default/", i); entry.Key != want {
				t.Errorf("delayed %d is %s due %v after the beginning, want %s", i, entry.Key, entry.Time.Sub(began), want)
			}
		}
		if p = l.Progress(all); len(p.Recent) != maxRecent || len(p.Failures) != maxFailures {
			t.Errorf("%d recent, %d failures are remembered, want %d and %d", len(p.Recent), len(p.Failures), maxRecent, maxFailures)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		expectEntries(t, "delayed after Run", l.Progress(all).Delayed)
	})
}

// A handler that panics loses only that event.
func TestHandlerPanicLosesOnlyItsEvent(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.start(b.informer)
		var s syncs
		l := New(loopName, s.sync)
		Watch(l, b.informer, func(c *corev1.ConfigMap) []cache.ObjectName {
			if c.Name == "poison" {
				panic("no owner")
			}
			return owners(c)
		})
		defer b.run(l, 1)()
		for range 3 {
			b.server.Modify(configMap("poison", "a"))
			b.server.Modify(configMap("good", "b"))
			expectEnqueued(t, &s, "by the good object", "default/b")
		}
		p := l.Progress(all)
		if p.Lost == 0 || len(p.Failures) != p.Lost || p.Failures[0].Key != "default/poison" {
			t.Errorf("%d events lost, failures %v, want those of poison", p.Lost, p.Failures)
		}
		if diff := cmp.Diff([]string{"Event handler panicked, the event is lost"}, b.logged(-1)[:1]); diff != "" {
			t.Errorf("error log (-want +got):\n%s", diff)
		}
	})
}

// TestErrorsAreNotKept checks that the memory for failing objects does not grow with the length of
// their errors.
func TestErrorsAreNotKept(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		long := apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, "a", errors.New(strings.Repeat("text ", 4000)))
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, long }}
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		const most = 510
		if kept := l.tracker.keys[foo].err; len(kept) > most || !strings.Contains(kept, "text") {
			t.Errorf("%d bytes are kept of an error of %d bytes, want at most %d", len(kept), len(long.Error()), most)
		}
		p := l.Progress(10)
		for _, o := range slices.Concat(p.Failures, p.Recent) {
			if o.Err != nil || len(o.Error) > most || !o.Answered {
				t.Errorf("an outcome has %d bytes of text, answered: %v, error: %T", len(o.Error), o.Answered, o.Err)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
