// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// credentialID is the key under which the API server records the token of a request.
const credentialID = "authentication.kubernetes.io/credential-id"

// Credential returns the ID of a request's token, or "" if it had none.
func Credential(event auditv1.Event) string { return strings.Join(event.User.Extra[credentialID], " ") }

// Options configure [Check].
type Options struct {
	// Lease is the Lease with which the replicas elect their leader.
	Lease types.NamespacedName
	// Replica matches the requests of replicas. All others are those of an administrator or of
	// an unrelated client.
	Replica func(auditv1.Event) bool
	// Sent returns when a request was sent, if a proxy saw it before the API server. Writes
	// that were sent in time but received late are counted separately, because no client can
	// take them back. May be nil.
	Sent func(auditv1.Event) (at time.Time, ok bool)
}

// ServiceAccount matches requests of a ServiceAccount.
func ServiceAccount(namespace, name string) func(auditv1.Event) bool {
	user := "system:serviceaccount:" + namespace + ":" + name
	return func(event auditv1.Event) bool { return event.User.Username == user }
}

// credential returns the credential of the replica that sent a request, or "".
func (o Options) credential(event auditv1.Event) (string, error) {
	if !o.Replica(event) {
		return "", nil
	}
	id := Credential(event)
	if id == "" {
		return "", errors.New("the audit log has no credential of " + event.User.Username)
	}
	return id, nil
}

// Check checks what the replicas did in events, which it does not modify. The events must
// begin before the replicas do. They must be complete requests, of the stage ResponseComplete.
func Check(events []auditv1.Event, o Options) (*Report, error) {
	leases, err := leaseWrites(events, o)
	if err != nil {
		return nil, err
	}
	h := newHistory(leases)
	r := &Report{Lease: o.Lease, Violations: h.violations}
	for _, event := range events {
		if !isWrite(event) || isOverhead(event) {
			continue
		}
		credential, err := o.credential(event)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", describe(event), err)
		}
		if credential == "" {
			continue
		}
		if succeeded(event) {
			r.Writes++
		}
		r.judge(h, o, credential, event)
	}
	for _, e := range h.epochs {
		r.Epochs = append(r.Epochs, *e)
	}
	r.addHandovers()
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return a.At.Compare(b.At) })
	return r, nil
}

// judge adds a write to the right part of the report.
func (r *Report) judge(h *history, o Options, credential string, event auditv1.Event) {
	at := event.RequestReceivedTimestamp.Time
	v := h.verdict(credential, at)
	switch {
	case v.rule == "":
		if v.epoch != nil && succeeded(event) {
			v.epoch.Writes++
		}
	case h.sentInTime(o, credential, event):
		r.Held = append(r.Held, event)
	case !succeeded(event):
		if v.rule.violates() {
			r.Refused++
		}
	case v.rule == afterExpiry:
		r.AfterExpiry++
	case v.rule == afterEdit:
		r.AfterEdit++
		r.Notice = max(r.Notice, v.late)
	default:
		r.Violations = append(r.Violations, newViolation(v.rule, credential, event, v.why))
		r.DualWindow = max(r.DualWindow, v.dual)
	}
}

// verdict is the judgment of a write by its position among the epochs.
type verdict struct {
	epoch *Epoch        // the epoch that the write belongs to
	rule  Rule          // empty if the write is correct
	why   string        // in words
	late  time.Duration // since its sender lost the Lease
	dual  time.Duration // since another replica got it
}

func (h *history) verdict(credential string, at time.Time) verdict {
	own := -1
	for i, e := range h.epochs {
		if e.Credential == credential && !at.Before(e.From) {
			own = i
		}
	}
	if own < 0 {
		return verdict{rule: WriteOutsideTerm, why: "before it ever held the Lease"}
	}
	e := h.epochs[own]
	if e.End == Lasts || !at.After(e.lost) {
		if expiry := e.expiry(at); at.After(expiry) {
			return verdict{epoch: e, rule: afterExpiry, late: at.Sub(expiry)}
		}
		return verdict{epoch: e}
	}
	v := verdict{epoch: e, rule: afterEdit, late: at.Sub(e.lost)}
	next := slices.IndexFunc(h.epochs[own+1:], func(e *Epoch) bool { return e.Credential != "" && !at.Before(e.From) })
	if next >= 0 {
		other := h.epochs[own+1+next]
		v.rule, v.dual = WriteOutsideTerm, at.Sub(other.From)
		v.why = fmt.Sprintf("%s after %s held the Lease", seconds(v.dual), other.Holder)
	}
	if e.End == Released {
		v.rule, v.why = WriteAfterRelease, seconds(v.late)+" after it released the Lease"
	}
	return v
}

// sentInTime reports whether a request would have been correct when it was sent.
func (h *history) sentInTime(o Options, credential string, event auditv1.Event) bool {
	if o.Sent == nil {
		return false
	}
	at, ok := o.Sent(event)
	return ok && h.verdict(credential, at).rule == ""
}

// addHandovers counts the handovers between replicas and sums up the gaps between them.
func (r *Report) addHandovers() {
	var last *Epoch
	for i := range r.Epochs {
		e := &r.Epochs[i]
		if e.Credential == "" {
			continue
		}
		if last != nil {
			r.Handovers++
			r.Leaderless += max(0, e.From.Sub(last.To))
		}
		last = e
	}
}

// isWrite matches requests that change objects. A standby tries the Lease with dry runs.
func isWrite(event auditv1.Event) bool {
	if uri, err := url.ParseRequestURI(event.RequestURI); err == nil && uri.Query().Has("dryRun") {
		return false
	}
	return event.ObjectRef != nil && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb)
}

func succeeded(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code/100 == 2
}

// isOverhead matches writes that a replica may make without leading: Leases, Events, and
// review requests, which are objects in form only.
func isOverhead(event auditv1.Event) bool {
	switch event.ObjectRef.APIGroup {
	case authenticationv1.GroupName, authorizationv1.GroupName:
		return true
	case coordinationv1.GroupName:
		return event.ObjectRef.Resource == "leases"
	}
	return event.ObjectRef.Resource == "events"
}

// describe describes a request: "patch foos/status default/a".
func describe(event auditv1.Event) string {
	ref := event.ObjectRef
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	name := cmp.Or(ref.Name, "?")
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	return event.Verb + " " + resource + " " + name
}
