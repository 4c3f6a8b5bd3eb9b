// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// admin is the user that makes the changes.
const admin = "admin"

// answer is the effect of a change of a Foo.
type answer struct {
	changed    time.Time // when the change was received, because watches may report it before it is answered
	deployment time.Time // when the candidate's next write of the Deployment was answered
	status     time.Time // when the next write of the status after that was answered
}

// at returns when the Deployment, or also the status, was written, or zero if it was not.
func (a answer) at(status bool) time.Time {
	if status {
		return a.status
	}
	return a.deployment
}

// readAnswers finds the effects of the changes in the audit log, keyed by the name of the
// changed object. The changes are the admin's calls of this kind. A Deployment has the name of
// its Foo. since is the start of a candidate that was started after the changes.
func readAnswers(events []auditv1.Event, user, change string, since time.Time) map[string]answer {
	events = slices.SortedFunc(slices.Values(events), func(a, b auditv1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	answers := map[string]answer{}
	for _, event := range events {
		if event.ObjectRef == nil || refused(event) || isRead(event) {
			continue
		}
		name, at := event.ObjectRef.Name, timeOf(event)
		a, changed := answers[name]
		switch call := cluster.Call(event); {
		case event.User.Username == admin && call == change && at.Before(since):
			a.changed = since
		case event.User.Username == admin && call == change:
			a.changed = at
		case event.User.Username != user || !changed || at.Before(since):
			continue
		case event.ObjectRef.Resource == "deployments" && a.deployment.IsZero():
			a.deployment = at
		case event.ObjectRef.Resource == "foos" && !a.deployment.IsZero() && a.status.IsZero():
			a.status = at
		}
		answers[name] = a
	}
	return answers
}

// timeOf returns when a change was received, or when any other request was answered.
func timeOf(event auditv1.Event) time.Time {
	if event.User.Username == admin {
		return event.RequestReceivedTimestamp.Time
	}
	return event.StageTimestamp.Time
}

// byCandidate matches requests of the candidate.
func (t *trial) byCandidate(event auditv1.Event) bool {
	return event.User.Username == t.candidate.user()
}

// countCalls counts writes and reads, except the daemon's requests for leader election and for
// serving its endpoints.
func countCalls(requests []auditv1.Event) []value {
	var all, failed, read float64
	for _, event := range requests {
		switch {
		case event.ObjectRef == nil || event.Verb == "watch" || isOverhead(event):
		case isRead(event):
			read++
		case refused(event):
			all, failed = all+1, failed+1
		default:
			all++
		}
	}
	return []value{{writes, all}, {"refused writes", failed}, {"GETs and LISTs", read}}
}

func isOverhead(event auditv1.Event) bool {
	return slices.Contains([]string{"leases", "tokenreviews", "subjectaccessreviews", "configmaps"}, event.ObjectRef.Resource) ||
		event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace == daemonName
}

func refused(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code/100 != 2
}

func isRead(event auditv1.Event) bool {
	return slices.Contains([]string{"get", "list", "watch"}, event.Verb)
}
