// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Rule is a rule that a replica can violate.
type Rule string

const (
	// WriteOutsideTerm is a write received after the Lease of the next holder was committed,
	// or before its sender first held the Lease.
	WriteOutsideTerm Rule = "write outside term"
	// WriteAfterRelease is a write received after its sender's own release was committed and
	// before the sender held the Lease again.
	WriteAfterRelease Rule = "write after release"
	// Overwrite is a write that took the Lease from a holder that had neither released it nor
	// let it expire, or that emptied the Lease of another replica.
	Overwrite Rule = "overwrite"

	// Counted, but not violations.
	afterExpiry Rule = "write after expiry"
	afterEdit   Rule = "write after an edit"
)

// violates distinguishes violations from what is only counted.
func (r Rule) violates() bool { return r != "" && r != afterExpiry && r != afterEdit }

// Violation is something that a replica did and must not do.
type Violation struct {
	Rule       Rule
	Credential string // of the replica that did it
	At         time.Time
	AuditID    types.UID
	What       string // what it did
	Why        string // why that is wrong
}

func newViolation(rule Rule, credential string, event auditv1.Event, why string) Violation {
	return Violation{
		Rule: rule, Credential: credential, At: event.RequestReceivedTimestamp.Time, AuditID: event.AuditID,
		What: describe(event), Why: why,
	}
}

// Report is the result of [Check].
type Report struct {
	Lease types.NamespacedName
	// Epochs are those of all holders, replicas or not, in their order.
	Epochs     []Epoch
	Violations []Violation

	// Writes is how many writes of replicas succeeded, not counting Leases, Events and the
	// like.
	Writes int
	// Held are the writes that were sent in time, but received when they would be violations,
	// or late in one of the ways that are only counted. Their status tells whether they
	// succeeded.
	Held []auditv1.Event
	// Refused is how many writes would have been violations if the API server had not rejected
	// them.
	Refused int
	// AfterExpiry is how many writes were received after the Lease of their sender had
	// expired, but before another replica took it.
	AfterExpiry int
	// AfterEdit is how many writes were received after a client edited or deleted the Lease of
	// their sender, but before another replica took it. Notice is how late the last of them
	// was.
	AfterEdit int
	Notice    time.Duration
	// DualWindow is the longest time in which one replica held the Lease and another wrote.
	DualWindow time.Duration
	// Handovers is how often a replica took the Lease after another, or again after itself.
	// Leaderless is the total time between those terms.
	Handovers  int
	Leaderless time.Duration
}

// Count returns the number of violations of a rule.
func (r *Report) Count(rule Rule) int {
	n := 0
	for _, v := range r.Violations {
		if v.Rule == rule {
			n++
		}
	}
	return n
}

// shown limits the listed violations. The counts are complete.
const shown = 5

// String returns the report as text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Lease %s: %d writes, %d violations; %d writes delayed in transit, %d rejected, %d after expiry, %d after an edit (the last %s later)\n",
		r.Lease, r.Writes, len(r.Violations), len(r.Held), r.Refused, r.AfterExpiry, r.AfterEdit, seconds(r.Notice))
	fmt.Fprintf(&b, "%d handovers, %s without a leader, dual window %s\n", r.Handovers, seconds(r.Leaderless), seconds(r.DualWindow))
	for _, e := range r.Epochs {
		fmt.Fprintf(&b, "%s (%s) held it from %s to %s: %s, %d writes\n", e.Holder, e.Credential, clock(e.From), clock(e.To), e.End, e.Writes)
	}
	for _, v := range r.Violations[:min(len(r.Violations), shown)] {
		fmt.Fprintf(&b, "%s by %s at %s: %s: %s\n", v.Rule, v.Credential, clock(v.At), v.What, v.Why)
	}
	return b.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
