// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"regexp"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// throttleInterval is the time between repeated lines with one cause about one object.
const throttleInterval = 10 * time.Second

// maxThrottled is the number of remembered lines. With more, lines may repeat more often.
const maxThrottled = 10000

// throttle decides which lines are logged. It is safe for concurrent use.
type throttle struct {
	mutex sync.Mutex
	lines *lru.Cache // *throttled by line
}

func newThrottle() *throttle { return &throttle{lines: lru.New(maxThrottled)} }

// line identifies repeated log lines.
type line struct {
	object, cause string
}

// lineOf returns the line with this cause. A long cause is truncated before the numbers in it are
// replaced, which takes time, and afterwards, so that their length does not move the end.
func lineOf(object, cause string) line {
	const most = 1000
	cause = varying.ReplaceAllString(cause[:min(len(cause), most)], "#")
	return line{object, truncate.Text(cause)}
}

// throttled is the state of a line.
type throttled struct {
	logged     time.Time // when it was last logged
	suppressed int       // since then
}

// allow returns whether a line about the object may be logged now, and how many repetitions
// were suppressed since the last one. Causes that differ only in numbers and IDs are equal.
func (t *throttle) allow(object, cause string) (ok bool, suppressed int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	this := lineOf(object, cause)
	if value, known := t.lines.Get(this); known {
		before, _ := value.(*throttled)
		if now.Sub(before.logged) < throttleInterval {
			before.suppressed++
			return false, 0
		}
		suppressed = before.suppressed
	}
	t.lines.Add(this, &throttled{logged: now})
	return true, suppressed
}

// varying matches numbers, UIDs and hashes.
var varying = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F]*(-[0-9a-fA-F]+)*`)
