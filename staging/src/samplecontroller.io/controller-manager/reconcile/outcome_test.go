// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

var errBroken = errors.New("broken")

var errConflict = fmt.Errorf("updating: %w", apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "foo", errors.New("stale")))

// syncOne runs a loop over one ConfigMap, default/foo, for the duration.
func syncOne(b *bubble, s *syncs, duration time.Duration, opts ...Option) {
	b.Helper()
	b.server.Add(configMap("foo"))
	b.start(b.informer)
	l := New(loopName, s.sync, opts...)
	WatchSelf(l, b.informer)
	stop := b.run(l, 1)
	time.Sleep(duration)
	if err := stop(); err != nil {
		b.Errorf("Run: %v", err)
	}
}

func TestSuccessIsNotRepeated(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var s syncs
		var o outcomes
		syncOne(b, &s, time.Hour, WithObserver(o.observe))
		if diff := cmp.Diff([]time.Duration{0}, s.times("default/foo")); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]Result{ResultSuccess}, o.results("default/foo")); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestRequeueAfter(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			return time.Duration(max(0, 3-nth)) * time.Minute, nil
		}}
		var o outcomes
		syncOne(b, &s, time.Hour, WithObserver(o.observe))
		if diff := cmp.Diff([]time.Duration{0, 2 * time.Minute, 3 * time.Minute}, s.times("default/foo")); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]Result{ResultRequeued, ResultRequeued, ResultSuccess}, o.results("default/foo")); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestNegativeRequeueAfterIsIgnored(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(string, int) (time.Duration, error) { return -time.Second, nil }}
		syncOne(b, &s, time.Hour)
		if got := len(s.times("default/foo")); got != 1 {
			t.Errorf("synced %d times, want once", got)
		}
	})
}

func TestErrorIsRetriedWithBackoffForever(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, errBroken }}
		syncOne(b, &s, 24*time.Hour)
		times := s.times("default/foo")
		// 5 ms, doubling to 5 minutes: 16 waits that are shorter, then one each 5 minutes.
		if want := 24*12 + 16 - 5; len(times) < want {
			t.Fatalf("synced %d times in a day, want at least %d: was the key dropped?", len(times), want)
		}
		for i, want := 1, 5*time.Millisecond; i < len(times); i, want = i+1, min(2*want, 5*time.Minute) {
			if got := times[i] - times[i-1]; got != want {
				t.Fatalf("retry %d came after %v, want %v", i, got, want)
			}
		}
		if diff := cmp.Diff("Sync failed, retrying with backoff", b.logged(-1)[0]); diff != "" {
			t.Errorf("error log (-want +got):\n%s", diff)
		}
	})
}

func TestBackoffIsResetAfterSuccess(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth == 4 {
				return time.Second, nil
			}
			return 0, errBroken
		}}
		syncOne(b, &s, 1041*time.Millisecond)
		want := []time.Duration{0, 5, 15, 35, 1035, 1040}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if diff := cmp.Diff(want, s.times("default/foo")); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
	})
}

func TestConflictIsRetriedWithBackoffButNotLoggedAsError(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth <= 2 {
				return 0, errConflict
			}
			return 0, nil
		}}
		var o outcomes
		syncOne(b, &s, time.Hour, WithObserver(o.observe))
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond}, s.times("default/foo")); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]Result{ResultConflict, ResultConflict, ResultSuccess}, o.results("default/foo")); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if errs := b.logged(-1); len(errs) > 0 {
			t.Errorf("logged errors %q, want none", errs)
		}
		conflict := "Sync hit a conflict, retrying with backoff"
		if diff := cmp.Diff([]string{conflict, conflict}, b.logged(2)); diff != "" {
			t.Errorf("log at V(2) (-want +got):\n%s", diff)
		}
	})
}

// TestLastingConflictIsAnError waits for the cache after each conflict, as a ConsistencyStore does.
func TestLastingConflictIsAnError(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth%2 == 0 {
				return 0, ErrStale
			}
			return 0, errConflict
		}}
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		var o outcomes
		l := New(loopName, s.sync, WithObserver(o.observe))
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		for conflicts := 1; conflicts <= 7; conflicts++ {
			wantErrors := max(0, conflicts-maxConflicts)
			for len(o.results("default/foo")) < 2*conflicts {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			p := l.Progress(10)
			if got := len(b.logged(-1)); got != wantErrors || len(p.Failures) != wantErrors || p.Failing != min(wantErrors, 1) {
				t.Errorf("after %d conflicts: %d errors in the log, %d failures, failing %d, want %d errors", conflicts, got, len(p.Failures), p.Failing, wantErrors)
			}
			for _, entry := range slices.Concat(p.Delayed.First, p.Waiting.First) {
				if entry.Retries != conflicts || !strings.Contains(entry.Error, "stale") {
					t.Errorf("after %d conflicts: the queue shows %d retries and the error %q", conflicts, entry.Retries, entry.Error)
				}
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestStaleKeyBacksOffAndIsNotLogged counts the tries of a key whose watch lags for 22 s.
func TestStaleKeyBacksOffAndIsNotLogged(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth <= 15 {
				return 0, fmt.Errorf("reading: %w", ErrStale)
			}
			if nth == 16 {
				return 0, errBroken
			}
			if nth == 17 {
				return 0, ErrStale
			}
			return 0, nil
		}}
		var o outcomes
		syncOne(b, &s, time.Hour, WithObserver(o.observe))
		times := s.times("default/foo")
		var waits []time.Duration
		for i, at := range times[1:] {
			waits = append(waits, at-times[i])
		}
		const ms = time.Millisecond
		want := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms}
		want = append(want, slices.Repeat([]time.Duration{2 * time.Second}, 10)...)
		if want = append(want, 5*ms, 100*ms); !slices.Equal(waits, want) {
			t.Errorf("synced after %v, want %v", waits, want)
		}
		if got := o.results("default/foo")[0]; got != ResultStale {
			t.Errorf("result %q, want %q", got, ResultStale)
		}
		if errs := append(b.logged(-1), b.logged(2)...); len(errs) != 1 {
			t.Errorf("logged %q, want only the error", errs)
		}
	})
}

func TestEventWakesStaleKey(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, ErrStale }}
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		before := len(s.times("default/foo"))
		b.server.Modify(configMap("foo", "changed"))
		synctest.Wait()
		if after := len(s.times("default/foo")); after != before+1 {
			t.Errorf("%d syncs at once after an event, want 1", after-before)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicAffectsOnlyItsKey(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(key string, nth int) (time.Duration, error) {
			if key == "default/foo" && nth <= 2 {
				panic("out of range")
			}
			return 0, nil
		}}
		b.server.Add(configMap("bar"))
		var o outcomes
		syncOne(b, &s, time.Hour, WithObserver(o.observe))

		if diff := cmp.Diff([]Result{ResultPanic, ResultPanic, ResultSuccess}, o.results("default/foo")); diff != "" {
			t.Errorf("results of the key that panics (-want +got):\n%s", diff)
		}
		times := s.times("default/foo")
		if backoff := times[2] - times[0]; backoff != 15*time.Millisecond {
			t.Errorf("retried twice in %v, want 15ms", backoff)
		}
		if diff := cmp.Diff([]Result{ResultSuccess}, o.results("default/bar")); diff != "" {
			t.Errorf("results of the other key (-want +got):\n%s", diff)
		}

		var panicked *PanicError
		for _, outcome := range o.all {
			if outcome.Result == ResultPanic && !errors.As(outcome.Err, &panicked) {
				t.Fatalf("error of the outcome is %v, want a PanicError", outcome.Err)
			}
		}
		if panicked.Value != "out of range" || !strings.Contains(string(panicked.Stack), "outcome_test.go") {
			t.Errorf("panicked with %v, stack:\n%s\nwant the value and the location of the panic", panicked.Value, panicked.Stack)
		}
		if diff := cmp.Diff("Sync panicked, retrying with backoff", b.logged(-1)[0]); diff != "" {
			t.Errorf("error log (-want +got):\n%s", diff)
		}
	})
}

func TestPanicWithConflictIsPanic(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			if nth == 1 {
				panic(errConflict)
			}
			return 0, nil
		}}
		var o outcomes
		syncOne(b, &s, time.Minute, WithObserver(o.observe))
		if diff := cmp.Diff([]Result{ResultPanic, ResultSuccess}, o.results("default/foo")); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestObserverGetsOutcome(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		var o outcomes
		l := New(loopName, func(ctx context.Context, _ cache.ObjectName) (time.Duration, error) {
			RecordWrite(ctx, "patch", "configmaps")("written")
			time.Sleep(3 * time.Second)
			return 0, errBroken
		}, WithObserver(o.observe))
		WatchSelf(l, b.informer)
		begun := time.Now()
		stop := b.run(l, 1)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		want := []Outcome{{
			Controller: loopName,
			Key:        "default/foo",
			Trigger:    "start",
			Result:     ResultError,
			Err:        errBroken,
			Error:      "broken",
			Began:      begun,
			Duration:   metav1.Duration{Duration: 3 * time.Second},
			Writes:     []Write{{"patch", "configmaps", "written"}},
		}}
		if diff := cmp.Diff(want, o.all, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunResetsBackoff(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(string, int) (time.Duration, error) { return 0, errBroken }}
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		l := New(loopName, s.sync)
		WatchSelf(l, b.informer)
		for range 3 {
			stop := b.run(l, 1)
			time.Sleep(36 * time.Millisecond)
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
			want := []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 35 * time.Millisecond}
			if diff := cmp.Diff(want, s.times("default/foo")); diff != "" {
				t.Errorf("syncs (-want +got):\n%s", diff)
			}
			s.reset()
		}
	})
}
