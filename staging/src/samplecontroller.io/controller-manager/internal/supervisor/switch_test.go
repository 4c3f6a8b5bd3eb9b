// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
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
