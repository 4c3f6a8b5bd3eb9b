// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"samplecontroller.io/controller-manager/debug"
)

// Event is an Event about an object.
type Event struct {
	// Last is when it last occurred, and Count how often.
	Last  time.Time `json:"last"`
	Count int32     `json:"count"`
	// Type is Normal or Warning.
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Events returns the Events about an object, the newest first.
func (c *Cluster) Events(ctx context.Context, kind Kind, namespace, name string) ([]Event, error) {
	return c.events(ctx, namespace, kind.Name, name)
}

// Handover is a change of the leader.
type Handover struct {
	Time time.Time `json:"time"`
	// Process is the identity of a replica, and What what it did: "became leader" or "stopped leading".
	Process string `json:"process"`
	What    string `json:"what"`
}

// Handovers returns the changes of the leader that Events report, the oldest first. The API server keeps Events for an
// hour by default.
func (c *Cluster) Handovers(ctx context.Context) ([]Handover, error) {
	events, err := c.events(ctx, c.options.DaemonNamespace, "Lease", Daemon)
	if err != nil {
		return nil, err
	}
	var handovers []Handover
	for _, event := range slices.Backward(events) {
		if process, what, ok := strings.Cut(event.Message, " "); ok && event.Reason == "LeaderElection" {
			handovers = append(handovers, Handover{Time: event.Last, Process: process, What: what})
		}
	}
	return handovers, nil
}

func (c *Cluster) events(ctx context.Context, namespace, kind, name string) ([]Event, error) {
	selector := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.String()
	list, err := c.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing Events: %s", debug.Short(err.Error()))
	}
	var events []Event
	for i := range list.Items {
		events = append(events, newEvent(&list.Items[i]))
	}
	slices.Reverse(events) // of those in one second, the name tells the order, by which the API server sorts
	slices.SortStableFunc(events, func(a, b Event) int { return b.Last.Compare(a.Last) })
	return events, nil
}

// newEvent reads the times where the API of Events has them: repeated Events have a series, and recorders of the old
// API count differently.
func newEvent(e *corev1.Event) Event {
	event := Event{Last: e.LastTimestamp.Time, Count: max(e.Count, 1), Type: e.Type, Reason: e.Reason, Message: e.Message}
	if e.EventTime.Time.After(event.Last) {
		event.Last = e.EventTime.Time
	}
	if e.Series != nil {
		event.Last, event.Count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return event
}
