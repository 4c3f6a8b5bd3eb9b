// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"regexp"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// throttleInterval is how far apart lines of one cause about one object are, after the first.
const throttleInterval = 10 * time.Second

// maxThrottled bounds how many kinds of lines are remembered. With more, some come more often.
const maxThrottled = 10000

// throttle decides which lines are logged. It may be used by several goroutines.
type throttle struct {
	mutex sync.Mutex
	lines *lru.Cache // the *throttled by the line
}

func newThrottle() *throttle { return &throttle{lines: lru.New(maxThrottled)} }

// line identifies log lines that repeat each other.
type line struct {
	object, cause string
}

// throttled is what is remembered of a line.
type throttled struct {
	logged     time.Time // last
	suppressed int       // since
}

// allow tells whether a line about the object may be logged now, and how many like it
// were suppressed since the last that was. A number or an ID in a cause does not make it
// another cause.
func (t *throttle) allow(object, cause string) (ok bool, suppressed int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	this := line{object, varying.ReplaceAllString(cause, "#")}
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
