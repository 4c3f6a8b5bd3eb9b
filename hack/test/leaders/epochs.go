// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// End is how an epoch ended.
type End string

const (
	// Lasts is the end of an epoch that has not ended yet.
	Lasts End = "lasts"
	// Released means that the holder itself emptied or deleted the Lease.
	Released End = "released"
	// Expired means that another replica took the Lease after its duration.
	Expired End = "expired"
	// Overwritten means that another replica took or emptied the Lease before that.
	Overwritten End = "overwritten"
	// Edited means that a client that is not a replica changed the holder, or emptied or
	// deleted the Lease.
	Edited End = "edited"
)

// Epoch is a period in which one holder had the Lease.
type Epoch struct {
	// Holder is the identity in the Lease.
	Holder string
	// Credential is the holder's credential. It is empty if the holder is not a replica, but
	// an identity that an administrator wrote into the Lease.
	Credential string
	// From is when the write that took the Lease was answered.
	From time.Time
	// To is when the holder no longer had the Lease, by its own act, by another's, or because
	// the duration since the last renewal was over. It is zero if the epoch Lasts.
	To time.Time
	// End is how it ended.
	End End
	// Writes is how many of the holder's writes were received while it had the Lease.
	Writes int

	uid      types.UID
	renewals []renewal
	// lost is when nothing that the holder could know allowed it to write any more. It is To,
	// except for an expired Lease: then it is when another replica took it.
	lost time.Time
}

// renewal is what a holder may rely on after a write of the Lease.
type renewal struct {
	received time.Time
	duration time.Duration
	renewed  time.Time // according to the Lease
}

// expiry returns when the Lease expires according to the last renewal received by then.
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

// history builds epochs from the writes of the Lease, and records violations.
type history struct {
	epochs     []*Epoch
	violations []Violation
	current    *Epoch // nil while no holder has the Lease
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

// keeps adds a write that keeps the holder to the current epoch. It returns false if another
// replica uses the holder's identity.
func (h *history) keeps(w leaseWrite) bool {
	last := &h.current.renewals[len(h.current.renewals)-1]
	switch {
	case !w.renewed.IsZero() && w.renewed.Equal(last.renewed) && w.duration == last.duration:
		return true // a standby's acknowledging annotation is not a renewal
	case w.credential == "" && h.current.Credential != "":
		last.duration = w.duration // an edit is not a renewal
		return true
	case h.current.Credential == "" && w.credential != "":
		// The replica that an administrator wrote into the Lease accepts it.
		h.current.Credential, h.current.From = w.credential, w.committed()
	case h.current.Credential != w.credential:
		return false
	}
	h.current.renewals = append(h.current.renewals, renewal{w.received(), w.duration, w.renewed})
	return true
}

// empty ends the current epoch without starting another. client-go marks a release by a
// duration of one second, for readers that see only the Lease. Here the writer is known.
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
