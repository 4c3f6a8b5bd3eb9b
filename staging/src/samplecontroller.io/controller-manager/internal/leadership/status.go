// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Status is the state of an election as this process knows it.
type Status struct {
	// Unknown is why this process does not know who leads, nil if it does: it cannot read the
	// Lease, and what it last saw has expired. Then Confirmed is when it last knew, and the
	// fields below are zero.
	Unknown   error
	Confirmed time.Time
	// Holder of the Lease, empty if nobody holds it.
	Holder string
	// Leading is whether this process leads: it holds the Lease and may write.
	Leading bool
	// Since is when the holder acquired the Lease, by the holder's clock. It is zero if
	// nobody holds it.
	Since time.Time
	// Wait is how long until this process takes the Lease unless it changes. It is 0 if
	// the process does not wait for the Lease.
	Wait time.Duration
	// Offered is why the holder wants to hand over, empty if it does not.
	Offered string
	// Refused is why this process could not read or write the Lease when it last tried, nil if it
	// could, or leads.
	Refused error
}

// Status returns the current state of the election.
func (e *Election) Status() Status {
	lease := e.observer.seen()
	read, write := e.observer.access.failing()
	known, outdated, confirmed := e.observer.knowledge()
	s := Status{Holder: held(lease)}
	if term := e.term.Load(); s.Holder == e.config.Identity {
		s.Leading = term != nil && term.begun() && term.Valid() == nil
	}
	switch {
	case s.Leading:
	case !known, read != nil && outdated:
		return Status{Unknown: cmp.Or(read, errNotRead), Confirmed: confirmed}
	}
	if !s.Leading {
		s.Refused = cmp.Or(read, write)
	}
	if s.Holder == e.config.Identity && !s.Leading {
		s.Holder = "" // its term is over, although nobody has written the Lease since
	}
	if expiry := e.observer.expiry(); !expiry.IsZero() {
		s.Wait = max(0, time.Until(expiry))
	}
	if s.Holder != "" {
		s.Since, s.Offered = ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time, lease.Annotations[offeredAnnotation]
	}
	return s
}

// String implements fmt.Stringer.
func (s Status) String() string {
	if s.Unknown != nil {
		return fmt.Sprintf("not known since %s: %s", s.Confirmed.UTC().Format(time.RFC3339), truncate.Error(s.Unknown))
	}
	text := "nobody leads"
	if s.Leading {
		text = "this process, " + s.Holder + ", leads"
	} else if s.Holder != "" {
		text = s.Holder + " leads"
	}
	if !s.Since.IsZero() {
		text += " since " + s.Since.UTC().Format(time.RFC3339)
	}
	if s.Offered != "" {
		text += ", and wants to hand over: " + s.Offered
	}
	switch {
	case s.Refused != nil:
		text += "; this process cannot take the Lease: " + truncate.Error(s.Refused)
	case s.Wait > 0:
		text += fmt.Sprintf("; this process takes the Lease in %v unless it is renewed", s.Wait.Round(time.Second))
	}
	return text
}
