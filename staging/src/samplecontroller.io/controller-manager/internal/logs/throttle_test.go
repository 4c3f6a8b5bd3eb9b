// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestThrottleLogsOneLinePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := newThrottle()
		logged, suppressed := 0, 0
		for range 350 { // 35 s of a failure each 100 ms
			if ok, n := throttle.allow("default/a", "refused"); ok {
				logged++
				suppressed += n
			}
			time.Sleep(100 * time.Millisecond)
		}
		if logged != 4 {
			t.Errorf("%d lines in 35s, want the first and three more", logged)
		}
		if suppressed != 3*99 {
			t.Errorf("%d lines are reported as suppressed, want %d", suppressed, 3*99)
		}
	})
}

func TestThrottleSeparatesObjectsAndCauses(t *testing.T) {
	throttle := newThrottle()
	for _, cause := range []string{"refused", "timeout"} {
		for _, object := range []string{"default/a", "default/b"} {
			if ok, _ := throttle.allow(object, cause); !ok {
				t.Errorf("the first line about %s, %s, is suppressed", object, cause)
			}
		}
	}
}

func TestThrottleIgnoresNumbersAndIDs(t *testing.T) {
	for _, causes := range [][2]string{
		{"read tcp 127.0.0.1:40000: connection reset", "read tcp 127.0.0.1:40001: connection reset"},
		{"timeout after 3.0021s", "timeout after 2.9s"},
		{"UID 0b8f5e6c-6f07-4a0e-8d2f-9a3d1f4b7c11 is gone", "UID ffb0a1c2-0000-4a0e-8d2f-9a3d1f4b7c22 is gone"},
	} {
		throttle := newThrottle()
		throttle.allow("default/a", causes[0])
		if ok, _ := throttle.allow("default/a", causes[1]); ok {
			t.Errorf("%q is logged although %q just was", causes[1], causes[0])
		}
	}
}

func TestThrottleIsBounded(t *testing.T) {
	throttle := newThrottle()
	for i := range 3 * maxThrottled {
		throttle.allow(fmt.Sprint("default/", i), "refused")
	}
	if n := throttle.lines.Len(); n != maxThrottled {
		t.Errorf("%d lines are remembered, want %d", n, maxThrottled)
	}
}

func TestLongCausesAreTruncated(t *testing.T) {
	long := strings.Repeat("text that a webhook quotes, ", 1000)
	for _, causes := range [][2]string{
		{"denied after 9 s: " + long, "denied after 1025 s: " + long},
		{"denied: " + long + "a", "denied: " + long + "b"},
	} {
		first, second := lineOf("default/a", causes[0]), lineOf("default/a", causes[1])
		if first != second || len(first.cause) > 510 {
			t.Errorf("%d and %d bytes of %q are remembered, want the same 500", len(first.cause), len(second.cause), causes[0][:20])
		}
	}
}

func TestLongValuesAreTruncated(t *testing.T) {
	if n := len(objects([]any{"reason", strings.Repeat("a", 20_000), "key", "default/a"})); n > 600 {
		t.Errorf("%d bytes of the values are remembered", n)
	}
}
