// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
)

func TestControllersAreSwitched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("a-controller"), newFake("b-controller", func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Second) // a sync in progress
			return nil
		})
		s := New(all(a, b), Options{Disabled: []string{"a-controller"}})
		expect := func(stateOfA, stateOfB State) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(map[string]State{"a-controller": stateOfA, "b-controller": stateOfB}, states(s)); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			if a.isRunning() != (stateOfA == Running) {
				t.Errorf("a-controller runs: %t", a.isRunning())
			}
		}
		expect(Disabled, Standby)
		s.Switch([]string{"a-controller"}) // on a standby
		expect(Standby, Disabled)
		s.Switch([]string{"b-controller"})
		expect(Disabled, Standby)

		end := begin(t, s)
		expect(Disabled, Running)
		s.Switch([]string{"a-controller"})
		expect(Running, Stopping)
		time.Sleep(time.Second)
		expect(Running, Disabled)
		s.Switch([]string{"a-controller", "b-controller"})
		expect(Running, Running)
		s.Switch(nil)
		expect(Disabled, Stopping)
		s.Switch([]string{"b-controller"}) // before it has stopped
		time.Sleep(time.Second)
		expect(Disabled, Running)
		if got := len(b.started()); got != 3 {
			t.Errorf("b-controller was started %d times, want 3", got)
		}
		expectEnd(t, end)
		expect(Disabled, Standby)
	})
}

// switchingSink calls a function once, when a controller is about to be run.
type switchingSink struct {
	logr.LogSink
	once *sync.Once
	call func()
}

func (s switchingSink) WithValues(...any) logr.LogSink {
	s.once.Do(s.call)
	return s
}

// A controller that is switched off while its run begins does not run.
func TestControllerIsSwitchedOffWhileItStarts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("a-controller")
		s := New(all(a), Options{})
		sink := switchingSink{klog.Background().GetSink(), &sync.Once{}, func() { s.Switch(nil) }}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.New(sink)))
		defer cancel()
		go func() { _ = s.Run(ctx) }()
		synctest.Wait()
		if state := states(s)["a-controller"]; state != Disabled || a.isRunning() {
			t.Errorf("a-controller is %s and runs: %t, want it disabled", state, a.isRunning())
		}
	})
}
