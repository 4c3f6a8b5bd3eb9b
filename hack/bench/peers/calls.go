// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// admin makes the changes.
const admin = "admin"

// answer is what became of a change of a Foo.
type answer struct {
	changed    time.Time // received: a busy API server tells others of it before it answers
	deployment time.Time // after that the contestant's write was answered
	status     time.Time // and after that this one
	ready      time.Time // told by a watch; only where that is waited for
}

// at is when what is waited for has happened; zero if it has not.
func (a answer) at(of answerOf) time.Time {
	switch of {
	case deploymentAnswer:
		return a.deployment
	case statusAnswer:
		return a.status
	default:
		return a.ready
	}
}

// by matches requests of a user.
func by(user string) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool { return event.User.Username == user }
}

// userOf is a contestant in the audit log.
func userOf(c contestant) string {
	account := c.serviceAccount()
	return fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name)
}

// readAnswers finds in the audit log what became of the changes, which are those of the
// given call by the admin, from the name of a Foo. A Deployment has the name of its Foo.
// since is when a contestant that came after the changes was started.
func readAnswers(events []auditv1.Event, contestant, change string, since time.Time) map[string]answer {
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
		case event.User.Username != contestant || !changed || at.Before(since):
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

// calls are the requests of a contestant in its time.
type calls struct {
	// Count is from verb, resource and, if it is none of success, result to how many.
	Count map[string]int `json:"count"`
	// Writes are all of them that were to change something, and Refused those of the
	// writes that did not; Reads are those for objects that are no watches. What a
	// leader writes and asks about itself is left out.
	Writes  int `json:"writes"`
	Refused int `json:"refused"`
	Reads   int `json:"reads"`
}

// countCalls counts requests and the watches that were opened.
func countCalls(requests, watches []auditv1.Event) calls {
	c := calls{Count: map[string]int{}}
	for _, event := range requests {
		if event.Verb == "watch" {
			continue // it has ended
		}
		call := cluster.Call(event)
		if refused(event) {
			call += fmt.Sprintf(" (%d)", event.ResponseStatus.Code)
		}
		c.Count[call]++
		switch {
		case event.ObjectRef == nil || ofLeader(event):
		case isRead(event):
			c.Reads++
		default:
			c.Writes++
			if refused(event) {
				c.Refused++
			}
		}
	}
	for _, event := range watches {
		c.Count[cluster.Call(event)]++
	}
	return c
}

func refused(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code/100 != 2
}

func isRead(event auditv1.Event) bool {
	return slices.Contains([]string{"get", "list", "watch"}, event.Verb)
}

// ofLeader matches what the daemon asks for to lead and to serve its endpoints.
func ofLeader(event auditv1.Event) bool {
	return slices.Contains([]string{"leases", "tokenreviews", "subjectaccessreviews", "configmaps"}, event.ObjectRef.Resource) ||
		event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace == daemonName
}
