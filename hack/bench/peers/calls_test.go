// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// request is one that was answered so many seconds after the epoch. A change takes long.
func request(user, verb, resource, subresource, name string, code int32, seconds int) auditv1.Event {
	event := auditv1.Event{
		Verb:           verb,
		ObjectRef:      &auditv1.ObjectReference{Namespace: "run-1", Resource: resource, Subresource: subresource, Name: name},
		ResponseStatus: &metav1.Status{Code: code},
		StageTimestamp: metav1.NewMicroTime(epoch.Add(time.Duration(seconds) * time.Second)),
	}
	event.User.Username = user
	event.RequestReceivedTimestamp = event.StageTimestamp
	if user == admin {
		event.StageTimestamp.Time = event.StageTimestamp.Add(time.Minute)
	}
	return event
}

func TestReadAnswers(t *testing.T) {
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	events := []auditv1.Event{
		request("me", "update", "foos", "status", "a", 409, 6), // refused
		request("me", "update", "foos", "status", "a", 200, 7),
		request(admin, "patch", "foos", "", "a", 200, 2),
		request("me", "patch", "deployments", "", "a", 200, 1), // before the change
		request("me", "update", "foos", "status", "a", 200, 3), // before the Deployment
		request("me", "patch", "deployments", "", "a", 200, 5),
		request("me", "patch", "deployments", "", "a", 200, 8), // needless
		request("other", "patch", "deployments", "", "a", 200, 4),
		request(admin, "patch", "foos", "", "b", 200, 4),
		request("me", "patch", "deployments", "", "c", 200, 4), // was not changed
	}
	want := map[string]answer{
		"a": {changed: at(2), deployment: at(5), status: at(7)},
		"b": {changed: at(4)},
	}
	if got := readAnswers(events, "me", "patch foos", time.Time{}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	// It was started after the changes.
	want = map[string]answer{
		"a": {changed: at(6), deployment: at(8)},
		"b": {changed: at(6)},
	}
	if got := readAnswers(events, "me", "patch foos", at(6)); !maps.Equal(got, want) {
		t.Errorf("after a start: got %v, want %v", got, want)
	}
}

func TestCountCalls(t *testing.T) {
	got := countCalls([]auditv1.Event{
		request("me", "create", "deployments", "", "a", 201, 1),
		request("me", "update", "foos", "status", "a", 409, 2),
		request("me", "update", "foos", "status", "a", 200, 3),
		request("me", "list", "foos", "", "", 200, 4),
		request("me", "get", "leases", "", "a", 404, 5),
		request("me", "watch", "foos", "", "", 200, 6), // has ended
	}, []auditv1.Event{request("me", "watch", "foos", "", "", 200, 0)})
	wantCount := map[string]int{
		"create deployments": 1, "update foos/status (409)": 1, "update foos/status": 1,
		"list foos": 1, "get leases (404)": 1, "watch foos": 1,
	}
	if !maps.Equal(got.Count, wantCount) {
		t.Errorf("got %v, want %v", got.Count, wantCount)
	}
	if got.Writes != 3 || got.Refused != 1 || got.Reads != 1 {
		t.Errorf("got %d writes, %d refused, %d reads, want 3, 1, 1", got.Writes, got.Refused, got.Reads)
	}
}

func TestReadCountsUnanswered(t *testing.T) {
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	r := result{Changes: 2}
	r.read(map[string]answer{
		"a": {changed: at(1), deployment: at(2), status: at(3)},
		"b": {changed: at(2), deployment: at(4)},
	}, load{answer: statusAnswer}, at(0), 10*time.Second)
	if r.Answered != 1 || r.Seconds != 9 || r.P50 != 1 || r.P99 != 10 {
		t.Errorf("got %+v, want 1 answered, 9 s from the first change to the end of patience, 1 s and 10 s for the two", r)
	}
}
