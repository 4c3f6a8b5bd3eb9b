// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"
)

// minSyncs is how many syncs may always run at once. With only one, an object whose writes
// hang would block all others.
const minSyncs = 2

// limit bounds how many syncs of a loop run at once, so that a slow link does not get more
// writes than it can carry within their timeout. It is a delay-based congestion control, like
// TCP Vegas: if the link is the bottleneck, more writes in flight make each write slower.
// Methods are safe for concurrent use. A nil limit has no effect.
type limit struct {
	timeout time.Duration // of a write

	mutex   sync.Mutex
	most    int // upper bound of now: the number of workers
	now     int // how many syncs may run at once
	running int
	waiting []chan struct{} // one per waiting sync; closed when it may run
	round   int             // how often now was decided

	// The measurements of this round: the number of syncs, and the shortest of their longest
	// writes. They cover only syncs that wrote, and that brought the loop to the limit when
	// they began.
	measured int
	fastest  time.Duration
	// base is how long a write takes without contention: the shortest write so far. While few
	// syncs run, it also follows slower writes, because the link may have become slower.
	base time.Duration
	// futile is set once writes timed out even with minSyncs, and until a round succeeds.
	futile bool
}

// gracePeriod is how long a sync counts before its first write.
const gracePeriod = 100 * time.Millisecond

// slot is the share of the limit that a running sync holds. It is nil if there is no limit.
type slot struct {
	limit *limit
	round int
	full  bool // the limit was reached when it began
	timer *time.Timer
	wrote bool // its first write began within the grace period
	left  bool // it no longer counts
}

// start sets the number of workers. The limit starts low, or with its last value.
func (l *limit) start(workers int) {
	if l == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.most = workers
	l.now = min(max(l.now, minSyncs), workers)
}

// acquire waits until another sync may run. It returns false if ctx ends first.
func (l *limit) acquire(ctx context.Context) (*slot, bool) {
	if l == nil {
		return nil, true
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.running < l.now {
		l.running++
	} else if !l.wait(ctx) {
		return nil, false
	}
	return &slot{limit: l, round: l.round, full: l.running >= l.now}, true
}

// begin marks the start of the sync. writes returns its writes so far, finished or not. A sync
// that does not write within the grace period, or runs longer than two write timeouts, waits
// for something else. It gives its slot to another sync.
func (s *slot) begin(writes func() []Write) {
	if s == nil {
		return
	}
	s.limit.mutex.Lock()
	defer s.limit.mutex.Unlock()
	s.timer = time.AfterFunc(gracePeriod, func() {
		s.limit.mutex.Lock()
		defer s.limit.mutex.Unlock()
		if !s.left && !s.wrote && len(writes()) > 0 {
			s.wrote = true
			s.timer.Reset(2*s.limit.timeout - gracePeriod)
			return
		}
		s.leave()
	})
}

// leave makes room for another sync, once. The caller holds the mutex.
func (s *slot) leave() {
	if s.left {
		return
	}
	s.left = true
	s.limit.running--
	s.limit.letRun()
}

// wait waits until another sync makes room. The caller holds the mutex; wait releases it while
// waiting.
func (l *limit) wait(ctx context.Context) bool {
	room := make(chan struct{})
	l.waiting = append(l.waiting, room)
	l.mutex.Unlock()
	defer l.mutex.Lock()
	select {
	case <-room:
		return true
	case <-ctx.Done():
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if i := slices.Index(l.waiting, room); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else {
		l.running-- // it was admitted just now
		l.letRun()
	}
	return false
}

// letRun admits waiting syncs up to the limit.
func (l *limit) letRun() {
	for len(l.waiting) > 0 && l.running < l.now {
		l.running++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// release ends a sync with these writes, or a sync that was never begun.
func (s *slot) release(writes []Write) {
	if s == nil {
		return
	}
	s.limit.mutex.Lock()
	defer s.limit.mutex.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.leave()
	var longest time.Duration
	for _, write := range writes {
		longest = max(longest, write.Took.Duration)
	}
	if longest > 0 {
		s.limit.measure(s, longest)
	}
}

// measure records the longest write of a sync. After as many syncs as may run at once, it sets
// a new limit. The caller holds the mutex.
func (l *limit) measure(s *slot, took time.Duration) {
	if l.base == 0 || took < l.base {
		l.base = took
	}
	if !s.full || s.round != l.round {
		return
	}
	if l.measured++; l.measured == 1 || took < l.fastest {
		l.fastest = took
	}
	if l.measured < l.now {
		return
	}
	next := minSyncs                       // start over
	givenUp := l.fastest >= l.timeout*9/10 // not exactly: the timeout and took have different start times
	switch {
	case !givenUp:
		if l.now == minSyncs { // then waiting is not caused by syncs of this loop
			l.base += (l.fastest - l.base) / 8
		}
		next = decide(l.now, l.timeout, l.base, l.fastest)
		l.futile = false
	case l.futile || l.now == minSyncs:
		// The number of writes is not why they hang, so they must not block others.
		next = 2 * l.now
		l.futile = true
	}
	l.now = min(max(next, minSyncs), l.most)
	l.round, l.measured = l.round+1, 0
	l.letRun()
}

// decide returns how many syncs may run at once. With the current limit now, the fastest write
// took this long. A write without contention takes base.
//
// The fastest write counts because a slow link delays all writes, but a hanging webhook only
// some. Waiting may take up a quarter of the time between base and the timeout, and is assumed
// to be proportional to the number of syncs. A latency that does not depend on the load, such
// as that of a slow webhook, does not lower the limit, up to a third of the timeout.
func decide(now int, timeout, base, fastest time.Duration) int {
	next := 2 * now
	if wait, most := fastest-base, (timeout-base)/4; 2*wait > most {
		next = int(time.Duration(now) * most / wait)
	}
	// Even if the whole time were waiting, a write would take at most half of the timeout.
	return min(next, int(time.Duration(now)*timeout/2/fastest))
}
