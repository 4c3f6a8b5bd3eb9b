// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"
)

// leastSyncs is how many syncs may always run at once: with one alone, an object whose
// writes hang would hold up all others.
const leastSyncs = 2

// limit bounds how many syncs of a loop run at once, so that a slow link is not given more
// writes than it carries within their timeout. It is a congestion control by delay, as TCP
// Vegas is: where the link is the bottleneck, the more writes are in flight the longer each
// takes. It may be used by several goroutines. A nil limit bounds nothing.
type limit struct {
	timeout time.Duration // of a write

	mutex   sync.Mutex
	most    int // syncs, which is the number of workers
	now     int // how many syncs may run
	running int
	waiting []chan struct{} // one for each sync that waits; closed when it may run
	round   int             // how often now was decided on

	// Of the syncs of this round that have written, and were the last that might run when they
	// began: how many, and the least of the times of their longest writes.
	measured int
	fastest  time.Duration
	// base is how long a write takes that does not wait for others: the least that any took,
	// but it follows the writes while there are few, for the link may have become slower.
	base time.Duration
	// futile says that writes were given up even with leastSyncs, and all have been since.
	futile bool
}

// gracePeriod is after how long a sync that has not begun to write does not count any more.
const gracePeriod = 100 * time.Millisecond

// slot is what a sync has while it counts. A nil slot is that of no limit.
type slot struct {
	limit *limit
	round int
	full  bool // it was the last that might run
	timer *time.Timer
	wrote bool // it has begun to write in time
	left  bool // it does not count any more
}

// start has at most so many syncs run at once, but begins with few, or with what was
// decided on before.
func (l *limit) start(workers int) {
	if l == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.most = workers
	l.now = min(max(l.now, leastSyncs), workers)
}

// acquire waits until one more sync may run. It returns false if ctx ended before.
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

// begin begins the sync. writes returns its writes so far, answered or not. A sync that has
// not begun to write soon, or runs for longer than two writes may take, waits for something
// else, and leaves its slot to another.
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

// leave makes room for another sync, once. The mutex is held.
func (s *slot) leave() {
	if s.left {
		return
	}
	s.left = true
	s.limit.running--
	s.limit.letRun()
}

// wait waits until another sync makes room. The mutex is held, but not while it waits.
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
		l.running-- // it was just let run
		l.letRun()
	}
	return false
}

// letRun lets as many syncs run as may.
func (l *limit) letRun() {
	for len(l.waiting) > 0 && l.running < l.now {
		l.running++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// release ends a sync that has written this, or that does not begin.
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

// measure takes the longest write of a sync into account, and decides when there are as
// many as may run at once. The mutex is held.
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
	next := leastSyncs                     // begin again
	givenUp := l.fastest >= l.timeout*9/10 // or nearly: the time is not measured from the same moment
	switch {
	case !givenUp:
		if l.now == leastSyncs { // what waits then does not wait for syncs of this loop
			l.base += (l.fastest - l.base) / 8
		}
		next = decide(l.now, l.timeout, l.base, l.fastest)
		l.futile = false
	case l.futile || l.now == leastSyncs:
		// It is not for their number that the writes hang, so they must not hold up others.
		next = 2 * l.now
		l.futile = true
	}
	l.now = min(max(next, leastSyncs), l.most)
	l.round, l.measured = l.round+1, 0
	l.letRun()
}

// decide returns how many syncs may run at once, if with so many as now even the fastest
// write took this long, and a write that waits for no others takes base.
//
// The fastest counts because a slow link delays all writes, but a hanging webhook only some.
// Waiting may take up a quarter of the time that base leaves of the timeout, and is assumed
// to grow in proportion to the number of syncs. A latency that does not depend on the load,
// for example of a slow webhook, does not lower the limit, up to a third of the timeout.
func decide(now int, timeout, base, fastest time.Duration) int {
	next := 2 * now
	if wait, most := fastest-base, (timeout-base)/4; 2*wait > most {
		next = int(time.Duration(now) * most / wait)
	}
	// Even if all of it were waiting, a write would take no longer than half of the timeout.
	return min(next, int(time.Duration(now)*timeout/2/fastest))
}
