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

// slot is what a sync has while it runs.
type slot struct {
	limit *limit
	round int
	full  bool // it was the last that might run
	freed func() bool
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
func (l *limit) acquire(ctx context.Context) (slot, bool) {
	if l == nil {
		return slot{}, true
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.running < l.now {
		l.running++
	} else if !l.wait(ctx) {
		return slot{}, false
	}
	// A sync that runs for longer than two writes may take waits for something else.
	timer := time.AfterFunc(2*l.timeout, l.free)
	return slot{l, l.round, l.running >= l.now, timer.Stop}, true
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

// free ends a sync, or stops counting one.
func (l *limit) free() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.running--
	l.letRun()
}

// letRun lets as many syncs run as may.
func (l *limit) letRun() {
	for len(l.waiting) > 0 && l.running < l.now {
		l.running++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// release ends a sync that has written this.
func (s slot) release(writes []Write) {
	if s.limit == nil {
		return
	}
	if s.freed() {
		s.limit.free()
	}
	var longest time.Duration
	for _, write := range writes {
		longest = max(longest, write.Took)
	}
	if longest > 0 {
		s.limit.measure(s, longest)
	}
}

// measure takes the longest write of a sync into account, and decides when there are as
// many as may run at once.
func (l *limit) measure(s slot, took time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
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
// such as that of a slow webhook, is no reason for fewer, up to a third of the timeout.
func decide(now int, timeout, base, fastest time.Duration) int {
	next := 2 * now
	if wait, most := fastest-base, (timeout-base)/4; 2*wait > most {
		next = int(time.Duration(now) * most / wait)
	}
	// Even if all of it were waiting, a write would take no longer than half of the timeout.
	return min(next, int(time.Duration(now)*timeout/2/fastest))
}
