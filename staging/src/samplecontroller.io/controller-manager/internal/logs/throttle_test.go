// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package flood

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstLineAndThenOneInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		logged, heldBack := 0, 0
		for range 350 { // 35 s of a failure each 100 ms
			if ok, held := l.Allow("default/a", "refused"); ok {
				logged++
				heldBack += held
			}
			time.Sleep(100 * time.Millisecond)
		}
		if logged != 4 {
			t.Errorf("%d lines in 35s, want the first and three more", logged)
		}
		if heldBack != 3*99 {
			t.Errorf("%d lines are said to have been held back, want %d", heldBack, 3*99)
		}
	})
}

func TestEachObjectAndEachCauseHasItsLine(t *testing.T) {
	var l Limiter
	for _, cause := range []string{"refused", "timeout"} {
		for _, object := range []string{"default/a", "default/b"} {
			if ok, _ := l.Allow(object, cause); !ok {
				t.Errorf("the first line about %s, %s, is held back", object, cause)
			}
		}
	}
}

func TestWhatVariesIsNoOtherCause(t *testing.T) {
	for _, causes := range [][2]string{
		{"read tcp 127.0.0.1:40000: connection reset", "read tcp 127.0.0.1:40001: connection reset"},
		{"timeout after 3.0021s", "timeout after 2.9s"},
		{"UID 0b8f5e6c-6f07-4a0e-8d2f-9a3d1f4b7c11 is gone", "UID ffb0a1c2-0000-4a0e-8d2f-9a3d1f4b7c22 is gone"},
	} {
		var l Limiter
		l.Allow("default/a", causes[0])
		if ok, _ := l.Allow("default/a", causes[1]); ok {
			t.Errorf("%q is logged although %q just was", causes[1], causes[0])
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		for i := range 3 * maxLines {
			l.Allow(fmt.Sprint(i), "refused")
		}
		if len(l.lines) > maxLines {
			t.Errorf("%d lines are remembered, want at most %d", len(l.lines), maxLines)
		}
		time.Sleep(3 * Interval)
		l.Allow("another", "refused")
		if len(l.lines) != 1 {
			t.Errorf("%d lines are remembered long after, want the last", len(l.lines))
		}
	})
}
