// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// request was answered this many seconds after the epoch. A change takes a minute.
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
		request("me", "update", "foos", "status", "a", 409, 6), // rejected
		request("me", "update", "foos", "status", "a", 200, 7),
		request(admin, "patch", "foos", "", "a", 200, 2),
		request("me", "patch", "deployments", "", "a", 200, 1), // before the change
		request("me", "update", "foos", "status", "a", 200, 3), // before the Deployment
		request("me", "patch", "deployments", "", "a", 200, 5),
		request("me", "patch", "deployments", "", "a", 200, 8), // redundant
		request("other", "patch", "deployments", "", "a", 200, 4),
		request(admin, "patch", "foos", "", "b", 200, 4),
		request("me", "patch", "deployments", "", "c", 200, 4), // not changed
	}
	want := map[string]answer{
		"a": {changed: at(2), deployment: at(5), status: at(7)},
		"b": {changed: at(4)},
	}
	if got := readAnswers(events, "me", "patch foos", time.Time{}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	// The candidate starts after the changes.
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
	})
	if want := []value{{writes, 3}, {"refused writes", 1}, {"GETs and LISTs", 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReadChanges(t *testing.T) {
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	answers := map[string]answer{
		"a": {changed: at(1), deployment: at(2), status: at(3)},
		"b": {changed: at(2), deployment: at(4), status: at(9)},
	}
	got := changes{status: true}.read(answers, at(0))
	want := []value{{untilDone, 8}, {"change to Deployment p50, ms", 1000}, {"change to Deployment p99, ms", 2000}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: from the first change to the last status", got, want)
	}
	got = changes{status: true, before: true}.read(answers, at(0))
	if want := (value{untilDone, 9}); got[0] != want {
		t.Errorf("got %v, want %v: from the start of the candidate", got[0], want)
	}
}
