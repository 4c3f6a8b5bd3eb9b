// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flood keeps what goes wrong again and again from filling the log.
package flood

import (
	"regexp"
	"sync"
	"time"
)

// Interval is how far apart lines of one cause about one object are, after the first.
const Interval = 10 * time.Second

// maxLines bounds what is remembered. With so many objects in trouble at once, some
// lines come more often.
const maxLines = 10000

// Limiter decides which lines are logged. The zero value is ready to use, by several
// goroutines.
type Limiter struct {
	mutex sync.Mutex
	lines map[line]*said
	swept time.Time
}

// line is what lines have in common of which one is enough.
type line struct {
	object, cause string
}

type said struct {
	at       time.Time // last
	heldBack int       // since
}

// Allow tells whether a line about the object may be logged now, and how many like it
// were held back since the last that was. What tells one try from the next in a cause,
// such as a number or an ID, does not make it another.
func (l *Limiter) Allow(object, cause string) (ok bool, heldBack int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	l.sweep(now)
	this := line{object, varying.ReplaceAllString(cause, "#")}
	before := l.lines[this]
	if before != nil && now.Sub(before.at) < Interval {
		before.heldBack++
		return false, 0
	}
	if before != nil {
		heldBack = before.heldBack
	}
	l.lines[this] = &said{at: now}
	return true, heldBack
}

// varying matches numbers, UIDs and hashes.
var varying = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F]*(-[0-9a-fA-F]+)*`)

// sweep forgets what was last said long ago.
func (l *Limiter) sweep(now time.Time) {
	if l.lines == nil || len(l.lines) >= maxLines {
		l.lines = map[line]*said{}
	}
	if now.Sub(l.swept) < Interval {
		return
	}
	l.swept = now
	for line, said := range l.lines {
		if now.Sub(said.at) >= 2*Interval {
			delete(l.lines, line)
		}
	}
}
