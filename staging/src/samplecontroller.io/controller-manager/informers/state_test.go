// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestStateTransitions has a row for each event, with the phase that it leads to from each
// phase in order.
func TestStateTransitions(t *testing.T) {
	var (
		problem  = errors.New("problem")
		muted    = errors.New("muted")
		phases   = []phase{unknown, denied, failing, listed, watching, cut, silent}
		causes   = []error{nil, notFound, broken, nil, nil, errShortWatches, muted}
		afterCut = func(event func(*state)) func(*state) { return func(s *state) { s.shortWatches = 1; event(s) } }
	)
	for name, tc := range map[string]struct {
		event   func(*state)
		want    [7]phase
		relists bool // a new list is required, whatever the phase
	}{
		"answered": {(*state).answered, [7]phase{unknown, unknown, failing, listed, watching, cut, silent}, false},
		"denied": {func(s *state) { s.deny(forbidden) },
			[7]phase{denied, denied, denied, denied, denied, denied, denied}, true},
		"failed": {func(s *state) { s.fail(problem) },
			[7]phase{failing, denied, failing, failing, failing, cut, silent}, false},
		"listed": {func(s *state) { s.list("2") }, [7]phase{listed, denied, failing, listed, watching, cut, silent},
			false},
		"opened":               {(*state).open, [7]phase{watching, watching, watching, watching, watching, cut, silent}, false},
		"opened after a short": {afterCut((*state).open), phases7(phases), false},
		"lasted":               {(*state).last, phases7(phases), false},
		"lasted after a short": {afterCut((*state).last), [7]phase{watching, watching, watching, watching, watching, watching, silent}, false},
		"event": {(*state).hear, [7]phase{watching, watching, watching, watching, watching, watching, watching},
			false},
		"ended":         {func(s *state) { s.end(false) }, phases7(phases), false},
		"ended at once": {func(s *state) { s.end(true) }, phases7(phases), false},
		"ended at once, again and again": {func(s *state) {
			for range maxShortWatches {
				s.end(true)
			}
		}, [7]phase{cut, cut, cut, cut, cut, cut, silent}, true},
		"silent":  {(*state).mute, [7]phase{silent, silent, silent, silent, silent, silent, silent}, true},
		"expired": {(*state).expire, phases7(phases), true},
		"cached":  {(*state).cache, phases7(phases), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n, from := range phases {
					begin := time.Now()
					version := "1"
					s := state{phase: from, cause: causes[n], served: from == watching, version: &version, since: begin, sign: begin}
					time.Sleep(time.Second)
					tc.event(&s)
					if s.phase != tc.want[n] {
						t.Errorf("from phase %d to %d, want %d", from, s.phase, tc.want[n])
					}
					if relists := s.version == nil; relists != tc.relists {
						t.Errorf("from phase %d: a new list is required: %t, want %t", from, relists, tc.relists)
					}
					if hasCause := s.phase == denied || s.phase == failing || !s.follows(); (s.cause != nil) != hasCause {
						t.Errorf("from phase %d to %d with the cause %v", from, s.phase, s.cause)
					}
					if lives := s.sign != begin; lives && s.phase != watching {
						t.Errorf("from phase %d to %d with a sign of life", from, s.phase)
					}
					if want := name == "cached" || from == watching && name != "denied"; s.served != want {
						t.Errorf("from phase %d: served: %t, want %t", from, s.served, want)
					}
				}
			})
		})
	}
}

func phases7(phases []phase) [7]phase { return [7]phase(phases) }

func TestReasonAndFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		state           state
		reason, failure error // exact, or wrapped by the reason
	}{
		"not read":               {state{}, ErrNotSynced, nil},
		"denied":                 {state{phase: denied, cause: forbidden}, forbidden, nil},
		"failing at the start":   {state{phase: failing, cause: broken}, broken, broken},
		"failing after a list":   {state{phase: failing, cause: broken, served: true}, nil, broken},
		"watches end at once":    {state{phase: cut, cause: errShortWatches, served: true}, nil, errShortWatches},
		"following":              {state{phase: watching, served: true}, nil, nil},
		"watching, not yet read": {state{phase: watching}, ErrNotSynced, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.reason("foos"); !errors.Is(got, tc.reason) || (got == nil) != (tc.reason == nil) {
				t.Errorf("reason %v, want %v", got, tc.reason)
			}
			if got := tc.state.failure(); !errors.Is(got, tc.failure) || (got == nil) != (tc.failure == nil) {
				t.Errorf("failure %v, want %v", got, tc.failure)
			}
		})
	}
}
