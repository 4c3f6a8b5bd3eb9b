// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// admin makes the changes.
const admin = "admin"

// answerOf is what a change must lead to.
type answerOf int

const (
	deploymentAnswer answerOf = iota // the Deployment is written
	statusAnswer                     // and then the status of the Foo
	podAnswer                        // the status of the Pod's Foo is written
)

// answer is what a change of a Foo led to.
type answer struct {
	changed    time.Time // received: watches may report a change before it is answered
	deployment time.Time // when the candidate's write after that was answered
	status     time.Time // and after that this one
}

// at returns when a change had led to this; zero if it has not.
func (a answer) at(of answerOf) time.Time {
	return map[answerOf]time.Time{deploymentAnswer: a.deployment, statusAnswer: a.status, podAnswer: a.status}[of]
}

// readAnswers finds in the audit log what the changes led to, by the name of what was
// changed. The changes are the admin's calls of this kind. A Deployment has the name of
// its Foo. since is when a candidate was started that came after the changes.
func readAnswers(events []auditv1.Event, user, change string, since time.Time) map[string]answer {
	events = slices.SortedFunc(slices.Values(events), func(a, b auditv1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	answers, podsOf := map[string]answer{}, map[string][]string{} // of a Foo, that wait for an answer
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
			if event.ObjectRef.Resource == "pods" {
				podsOf[fooOf(name)] = append(podsOf[fooOf(name)], name)
			}
		case event.User.Username == user && len(podsOf[name]) > 0:
			for _, pod := range podsOf[name] {
				answers[pod] = answer{changed: answers[pod].changed, status: at}
			}
			delete(podsOf, name)
			continue
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

// timeOf is when a change was received, or anything else answered.
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

// countCalls counts writes and reads, without what the daemon asks for to lead and to
// serve its endpoints.
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
	return []value{{writes, all}, {refusedWrites, failed}, {"GETs and LISTs", read}}
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
