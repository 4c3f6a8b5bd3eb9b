// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Status is the state of an election as this process knows it.
type Status struct {
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
}

// Status returns the current state of the election.
func (e *Election) Status() Status {
	lease := e.observer.seen()
	s := Status{Holder: held(lease)}
	if expiry := e.observer.expiry(); !expiry.IsZero() {
		s.Wait = max(0, time.Until(expiry))
	}
	if term := e.term.Load(); s.Holder == e.config.Identity {
		s.Leading = term != nil && term.begun() && term.Valid() == nil
	}
	if s.Holder != "" {
		s.Since, s.Offered = ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time, lease.Annotations[offeredAnnotation]
	}
	return s
}

// String implements fmt.Stringer.
func (s Status) String() string {
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
	if s.Wait > 0 {
		text += fmt.Sprintf("; this process takes the Lease in %v unless it is renewed", s.Wait.Round(time.Second))
	}
	return text
}
