// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2/ktesting"
)

func TestRunStartsAndWaitsForControllers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		quick := newFake("quick-controller")
		slow := newFake("slow-controller", func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Minute) // a sync in progress
			return nil
		})
		s := New(all(quick, slow), Options{})
		end, log := beginWithLog(t, s)
		time.Sleep(time.Hour)
		if !quick.isRunning() || !slow.isRunning() {
			t.Error("a controller does not run")
		}

		told := time.Now()
		expectEnd(t, end)
		if took := time.Since(told); took != time.Minute {
			t.Errorf("Run returned after %v, want %v, when the last controller returned", took, time.Minute)
		}
		if quick.isRunning() || slow.isRunning() {
			t.Error("a controller still runs")
		}
		for _, entry := range log.Data() {
			if entry.Type == ktesting.LogError {
				t.Errorf("logged an error, although nothing failed: %s", entry.Message)
			}
		}
	})
}

func TestRunWithoutControllersWaitsForTerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := New(nil, Options{ShutdownTimeout: time.Second}).Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if ctx.Err() == nil {
			t.Error("Run returned before its term had ended")
		}
	})
}

func TestEndedTermStartsNoController(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newFake("foo-controller")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := New(all(c), Options{})
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := len(c.started()); got != 0 {
			t.Errorf("started %d times, want never", got)
		}
		if diff := cmp.Diff(map[string]State{"foo-controller": Standby}, states(s)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

func TestSecondTermRestartsControllers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("a-controller"), newFake("b-controller")
		s := New(all(a, b), Options{ShutdownTimeout: time.Second})
		for term := 1; term <= 3; term++ {
			end := begin(t, s)
			if diff := cmp.Diff(map[string]State{"a-controller": Running, "b-controller": Running}, states(s)); diff != "" {
				t.Errorf("states in term %d (-want +got):\n%s", term, diff)
			}
			if got := len(a.started()) + len(b.started()); got != 2*term {
				t.Errorf("%d starts by term %d, want %d", got, term, 2*term)
			}
			expectEnd(t, end)
			if diff := cmp.Diff(map[string]State{"a-controller": Standby, "b-controller": Standby}, states(s)); diff != "" {
				t.Errorf("states after term %d (-want +got):\n%s", term, diff)
			}
		}
	})
}

// sourced is a controller with sources that do not return.
type sourced struct{ *fake }

func (sourced) RunningSources() int { return 2 }

func TestShutdownErrorNamesControllers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		hang := func(context.Context, int) error { <-release; return nil }
		fed := sourced{newFake("c-controller", hang)}
		others := all(newFake("b-controller", hang), newFake("good-controller"), newFake("a-controller", hang))
		s := New(append(others, fed), Options{ShutdownTimeout: 10 * time.Second})
		end := begin(t, s)

		told := time.Now()
		err := end()
		if err == nil {
			t.Fatal("Run returned no error, although controllers still run")
		}
		if want := "controllers still running 10s after they were told to stop: a-controller, b-controller, " +
			"c-controller (functions given to Source that have not returned: 2; they must return when their context ends)"; err.Error() != want {
			t.Errorf("Run: %q, want %q", err, want)
		}
		if took := time.Since(told); took != 10*time.Second {
			t.Errorf("Run returned after %v, want 10s", took)
		}
		want := map[string]State{"a-controller": Stopping, "b-controller": Stopping, "c-controller": Stopping, "good-controller": Standby}
		if diff := cmp.Diff(want, states(s)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}

		close(release)
		synctest.Wait()
		want = map[string]State{"a-controller": Standby, "b-controller": Standby, "c-controller": Standby, "good-controller": Standby}
		if diff := cmp.Diff(want, states(s)); diff != "" {
			t.Errorf("states after they have returned (-want +got):\n%s", diff)
		}
	})
}

func TestStatusStateSinceReason(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newFake("foo-controller", func(ctx context.Context, nth int) error {
			if nth == 1 {
				time.Sleep(time.Minute)
				return errBroken
			}
			<-ctx.Done()
			time.Sleep(time.Minute)
			return nil
		})
		s := New(all(c), Options{Backoff: exactBackoff})
		var since time.Time
		expect := func(state State, reason string) {
			t.Helper()
			synctest.Wait()
			want := []Status{{Controller: "foo-controller", State: state, Since: since, Reason: reason}}
			if diff := cmp.Diff(want, s.Status(0)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			failing := map[string]string{}
			if state == Degraded {
				failing["foo-controller"] = "Degraded since " + since.UTC().Format(time.RFC3339) + ": " + reason
			}
			if diff := cmp.Diff(failing, unhealthy(s)); diff != "" {
				t.Errorf("failing checks while %s (-want +got):\n%s", state, diff)
			}
		}

		since = time.Now()
		expect(Standby, "")
		time.Sleep(time.Hour)
		since = time.Now()
		end := begin(t, s)
		expect(Running, "")
		time.Sleep(time.Minute)
		since = time.Now()
		expect(Degraded, "broken")
		time.Sleep(time.Second)
		since = time.Now()
		expect(Running, "")
		time.Sleep(time.Minute)

		since = time.Now()
		ended := make(chan struct{})
		go func() { defer close(ended); expectEnd(t, end) }()
		expect(Stopping, "")
		<-ended
		since = since.Add(time.Minute)
		expect(Standby, "")
	})
}

func TestHealthCheckNames(t *testing.T) {
	var names []string
	for _, check := range New(all(newFake("b-controller"), newFake("a-controller")), Options{}).HealthChecks() {
		names = append(names, check.Name())
	}
	if diff := cmp.Diff([]string{"a-controller", "b-controller"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestPanicIsReasonOfState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newFake("foo-controller", func(context.Context, int) error { panic("out of range") })
		s := New(all(c), Options{Backoff: exactBackoff})
		end := begin(t, s)
		if got := s.Status(0)[0]; got.State != Degraded || got.Reason != "panic: out of range" {
			t.Errorf("status is %s because %q, want %s because %q", got.State, got.Reason, Degraded, "panic: out of range")
		}
		expectEnd(t, end)
	})
}

// The term may end just before a controller sets a new state.
func TestLateStateIsIgnored(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRunner(newFake("foo-controller"), true)
	r.become(ctx, Starting, "")
	cancel()
	r.stopping()
	for _, late := range []State{Running, Degraded} {
		r.become(ctx, late, "late")
		if got := r.own().State; got != Stopping {
			t.Errorf("state is %s, want %s", got, Stopping)
		}
	}
	r.stopped()
	if got := r.own().State; got != Standby {
		t.Errorf("state is %s, want %s", got, Standby)
	}
}
