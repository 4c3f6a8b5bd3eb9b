// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// End says how an epoch ended.
type End string

const (
	// Lasts is the end of an epoch that has none yet.
	Lasts End = "lasts"
	// Released is one whose holder emptied or deleted the Lease itself.
	Released End = "released"
	// Expired is one whose Lease another took after its duration.
	Expired End = "expired"
	// Overwritten is one whose Lease another replica took or emptied before that.
	Overwritten End = "overwritten"
	// Edited is one whose Lease somebody who is no replica gave to another, emptied or
	// deleted.
	Edited End = "edited"
)

// Epoch is a time in which one holder had the Lease.
type Epoch struct {
	// Holder is the identity in the Lease.
	Holder string
	// Credential is the holder's; empty if it is no replica, but somebody whom an
	// administrator wrote into the Lease.
	Credential string
	// From is when the write by which it took the Lease was answered.
	From time.Time
	// To is when it had the Lease no longer, by its own act, that of another, or because
	// the duration since the last renewal was over; zero if it Lasts.
	To time.Time
	// End is how it ended.
	End End
	// Writes is how many of its writes were received while it had the Lease.
	Writes int

	uid      types.UID
	renewals []renewal
	// lost is when it could know of nothing that allowed it to write: as To, but for an
	// expired Lease when another had taken it.
	lost time.Time
}

// renewal is what a holder may count on from a write of the Lease on.
type renewal struct {
	received time.Time
	duration time.Duration
	renewed  time.Time // as the Lease says
}

// expiry is when the Lease expires by the last renewal that was received until then.
func (e *Epoch) expiry(until time.Time) time.Time {
	last := e.renewals[0]
	for _, r := range e.renewals[1:] {
		if r.received.After(until) {
			break
		}
		last = r
	}
	return last.received.Add(last.duration)
}

func (e *Epoch) end(how End, at, lost time.Time) { e.End, e.To, e.lost = how, at, lost }

// history makes epochs of the writes of the Lease, and notes what was wrong with them.
type history struct {
	epochs     []*Epoch
	violations []Violation
	current    *Epoch // nil while nobody holds the Lease
}

func newHistory(writes []leaseWrite) *history {
	h := &history{}
	for _, w := range writes {
		switch {
		case w.deleted || w.holder == "":
			h.empty(w)
		case h.current != nil && h.current.uid == w.uid && h.current.Holder == w.holder && h.keeps(w):
		default:
			h.change(w)
		}
	}
	return h
}

// keeps adds a write that leaves the holder as it is to the present epoch. It returns
// false if it is another who uses the holder's identity.
func (h *history) keeps(w leaseWrite) bool {
	last := &h.current.renewals[len(h.current.renewals)-1]
	switch {
	case !w.renewed.IsZero() && w.renewed.Equal(last.renewed) && w.duration == last.duration:
		return true // an annotation, by which a standby accepts, renews nothing
	case w.credential == "" && h.current.Credential != "":
		last.duration = w.duration // an edit is no renewal
		return true
	case h.current.Credential == "" && w.credential != "":
		// Whom an administrator wrote into the Lease takes it up.
		h.current.Credential, h.current.From = w.credential, w.committed()
	case h.current.Credential != w.credential:
		return false
	}
	h.current.renewals = append(h.current.renewals, renewal{w.received(), w.duration, w.renewed})
	return true
}

// empty ends the present epoch without another. That a release has a duration of one
// second is client-go's mark for those who see only the Lease; here it is known who
// wrote it.
func (h *history) empty(w leaseWrite) {
	e := h.current
	if e == nil {
		return
	}
	how := Edited
	switch w.credential {
	case "":
	case e.Credential:
		how = Released
	default:
		how = Overwritten
		h.overwrite(w, fmt.Sprintf("emptied the Lease of %s, which it did not hold", e.Holder))
	}
	e.end(how, w.committed(), w.committed())
	h.current = nil
}

// change begins the epoch of another holder.
func (h *history) change(w leaseWrite) {
	if e := h.current; e != nil {
		expiry := e.expiry(w.received())
		switch {
		case w.credential == "":
			e.end(Edited, w.committed(), w.committed())
		case e.uid != w.uid: // the deletion is not in the log
			e.end(Edited, w.received(), w.received())
		case w.received().Before(expiry):
			e.end(Overwritten, w.committed(), w.committed())
			h.overwrite(w, fmt.Sprintf("took the Lease of %s %s before it expired", e.Holder, seconds(expiry.Sub(w.received()))))
		default:
			e.end(Expired, expiry, w.committed())
		}
	}
	h.current = &Epoch{
		Holder: w.holder, Credential: w.credential, From: w.committed(), End: Lasts,
		uid: w.uid, renewals: []renewal{{w.received(), w.duration, w.renewed}},
	}
	h.epochs = append(h.epochs, h.current)
}

func (h *history) overwrite(w leaseWrite, why string) {
	h.violations = append(h.violations, newViolation(Overwrite, w.credential, w.event, why))
}
