// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Change is what a write would report.
type Change int

// Kinds of changes.
const (
	// OnlyProgress is a change that readers can wait for, such as that of a count.
	OnlyProgress Change = iota
	// Transition is a change that readers wait for, such as that of a condition.
	Transition
)

// Pace spaces the writes with which a controller reports the state of each object:
//
//   - Progress is written one interval after it was found, and one interval after the last
//     write. Often a transition comes first, and one write is enough for both.
//   - A transition is written at once, or one interval after the last transition.
//   - A transition may follow progress by less than an interval only once, until the object was
//     not written for two intervals.
//
// So an object is written at most duration/interval + 2 times, whatever happens to it, and no
// change waits for longer than an interval. The last state is always written, because the
// caller syncs the object again after each wait.
//
// A write that fails is not counted. A re-created object of the same name starts afresh. Only
// objects that wait or were written recently use memory. Methods are safe for concurrent use,
// but only one goroutine at a time may write an object.
type Pace struct {
	interval func() time.Duration
	clock    clock.PassiveClock

	mutex   sync.Mutex
	pending map[cache.ObjectName]pending
	// recent has the writes since rotated, and earlier those of the period before that. A
	// period is two intervals: no write matters for longer.
	recent, earlier map[cache.ObjectName]written
	rotated         time.Time
}

// pending is a change that is not written yet.
type pending struct {
	uid     types.UID
	since   time.Time
	writing bool
}

// written has the last writes of an object.
type written struct {
	uid              types.UID
	last, transition time.Time
	// early is set if a transition was written less than an interval after progress.
	early bool
}

// since returns the write from which the next transition is an interval away.
func (w written) since() time.Time {
	if w.early {
		return w.last
	}
	return w.transition
}

// NewPace returns a Pace that measures time with clock. interval is called at each use, because the interval
// may change. With an interval of 0 or less nothing waits.
func NewPace(interval func() time.Duration, clock clock.PassiveClock) *Pace {
	return &Pace{interval: interval, clock: clock, pending: map[cache.ObjectName]pending{}}
}

// Wait returns how long to wait before writing the change of an object; 0 if it may be written
// now, by [Pace.Write]. Call it whenever a sync finds that the object has to be written, and sync
// the object again after the wait. uid tells a re-created object from its predecessor.
func (p *Pace) Wait(key cache.ObjectName, uid types.UID, change Change) time.Duration {
	if p.interval() <= 0 {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock.Now()
	found, ok := p.pending[key]
	if !ok || found.uid != uid {
		found = pending{uid: uid, since: now}
		p.pending[key] = found
	}
	last := p.written(key, uid)
	from := last.since()
	if change == OnlyProgress {
		if from = found.since; from.Before(last.last) {
			from = last.last
		}
	}
	return p.remaining(from, now)
}

// Throttled returns how long an object will not be written, whatever changes: it is being
// written, or the interval after a transition is not over. It returns 0 if the object may be
// written. An empty uid stands for any.
func (p *Pace) Throttled(key cache.ObjectName, uid types.UID) time.Duration {
	if p.interval() <= 0 {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if found := p.pending[key]; found.writing && (uid == "" || found.uid == uid) {
		return p.interval()
	}
	return p.remaining(p.written(key, uid).since(), p.clock.Now())
}

// Write calls write, which writes an object, and returns its error. The object is throttled
// during the call, and if it returns nil, [Pace.Wait] spaces the next write from this one. A
// caller that reports all changes as transitions writes each object at most once per interval.
func (p *Pace) Write(key cache.ObjectName, uid types.UID, change Change, write func() error) error {
	p.begin(key, uid)
	made := false
	// This also runs after a panic.
	defer func() { p.end(key, uid, change, made) }()
	err := write()
	made = err == nil
	return err
}

// UpToDate records that an object need not be written any more, so that a later change begins to
// wait when it is found.
func (p *Pace) UpToDate(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done(key)
}

// Forget forgets an object that is gone, which saves memory until its last writes are too old to
// matter.
func (p *Pace) Forget(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done(key)
	delete(p.recent, key)
	delete(p.earlier, key)
}

func (p *Pace) begin(key cache.ObjectName, uid types.UID) {
	if p.interval() <= 0 {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	found, ok := p.pending[key]
	if !ok || found.uid != uid {
		found = pending{uid: uid, since: p.clock.Now()}
	}
	found.writing = true
	p.pending[key] = found
}

func (p *Pace) end(key cache.ObjectName, uid types.UID, change Change, made bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.interval() <= 0 {
		p.done(key) // the interval may have been another one when the write began
		return
	}
	if !made {
		found := p.pending[key]
		found.writing = false
		p.pending[key] = found
		return
	}
	p.done(key)
	now, write := p.clock.Now(), p.written(key, uid)
	switch after := now.Sub(write.last); {
	case after < p.interval():
		write.early = true
	case after >= 2*p.interval():
		write.early = false
	}
	if write.uid, write.last = uid, now; change == Transition {
		write.transition = now
	}
	p.recent[key] = write
}

// done removes a pending change. A map keeps its size, so one that becomes empty is replaced.
func (p *Pace) done(key cache.ObjectName) {
	if _, ok := p.pending[key]; !ok {
		return
	}
	if delete(p.pending, key); len(p.pending) == 0 {
		p.pending = map[cache.ObjectName]pending{}
	}
}

// remaining returns how much is left of the interval that began at from.
func (p *Pace) remaining(from, now time.Time) time.Duration {
	return max(p.interval()-now.Sub(from), 0)
}

// written returns the last writes of an object. An empty uid stands for any.
func (p *Pace) written(key cache.ObjectName, uid types.UID) written {
	if now := p.clock.Now(); p.recent == nil || now.Sub(p.rotated) >= 2*p.interval() {
		p.recent, p.earlier, p.rotated = map[cache.ObjectName]written{}, p.recent, now
	}
	last, ok := p.recent[key]
	if !ok {
		last = p.earlier[key]
	}
	if uid != "" && last.uid != uid {
		return written{}
	}
	return last
}
