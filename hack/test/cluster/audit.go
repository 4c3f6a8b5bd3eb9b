// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	answerPoll = 5 * time.Millisecond
	// answerTimeout is slightly longer than the API server's request timeout. A killed API
	// server never answers.
	answerTimeout = 70 * time.Second
)

// auditLog is the part of the audit log read so far. Tests read it often while it grows, so
// each line is decoded only once.
type auditLog struct {
	mutex      sync.Mutex
	offset     int64
	events     []auditv1.Event         // of answered requests
	watches    []auditv1.Event         // of opened watches
	unanswered map[types.UID]time.Time // when requests other than watches were received
}

// read decodes the lines written since the last call.
func (l *auditLog) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	if l.unanswered == nil {
		l.unanswered = map[types.UID]time.Time{}
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return nil // the last line may be incomplete
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("decoding the audit log: %w", err)
		}
		l.offset += int64(len(line))
		switch event.Stage {
		case auditv1.StageRequestReceived:
			if event.Verb != "watch" {
				l.unanswered[event.AuditID] = event.RequestReceivedTimestamp.Time
			}
		case auditv1.StageResponseStarted:
			if event.Verb == "watch" {
				l.watches = append(l.watches, event)
			}
		case auditv1.StageResponseComplete:
			if event.ObjectRef != nil && event.ObjectRef.Subresource == "status" {
				event.ResponseObject = nil // only hack/tools/kstatus reads it, from the file
			}
			l.events = append(l.events, event)
			delete(l.unanswered, event.AuditID)
		case auditv1.StagePanic:
			delete(l.unanswered, event.AuditID)
		}
	}
}

// answered waits until all requests received by now have been answered, and returns all
// events. It does not wait for requests so old that they will never be answered. The events
// are read-only.
func (l *auditLog) answered(path string, timeout time.Duration) ([]auditv1.Event, error) {
	events, received, err := l.state(path)
	for err == nil {
		maps.DeleteFunc(received, func(_ types.UID, at time.Time) bool { return time.Since(at) > timeout })
		if len(received) == 0 {
			break
		}
		time.Sleep(answerPoll)
		var unanswered map[types.UID]time.Time
		events, unanswered, err = l.state(path)
		maps.DeleteFunc(received, func(id types.UID, _ time.Time) bool { return unanswered[id].IsZero() })
	}
	return events, err
}

// state reads the lines written since the last call. It returns all answered requests, and
// when the unanswered ones were received.
func (l *auditLog) state(path string) ([]auditv1.Event, map[types.UID]time.Time, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.read(path); err != nil {
		return nil, nil, err
	}
	return l.events, maps.Clone(l.unanswered), nil
}

// AuditEvents returns the answered requests that match all conditions, in the order of their
// answers. The effect of a request can be visible before its answer, and so before its line in
// the log. AuditEvents therefore waits for the requests that the API server has received by
// now.
func (c *Cluster) AuditEvents(conditions ...func(auditv1.Event) bool) ([]auditv1.Event, error) {
	all, err := c.audit.answered(c.AuditLog, answerTimeout)
	if err != nil {
		return nil, err
	}
	return matching(all, conditions), nil
}

// AuditWatches returns the watches opened so far that match all conditions, in the order in
// which they were opened. [Cluster.AuditEvents] returns a watch only after it has ended.
func (c *Cluster) AuditWatches(conditions ...func(auditv1.Event) bool) ([]auditv1.Event, error) {
	c.audit.mutex.Lock()
	defer c.audit.mutex.Unlock()
	if err := c.audit.read(c.AuditLog); err != nil {
		return nil, err
	}
	return matching(c.audit.watches, conditions), nil
}

func matching(all []auditv1.Event, conditions []func(auditv1.Event) bool) []auditv1.Event {
	var events []auditv1.Event
	for _, event := range all {
		if !slices.ContainsFunc(conditions, func(matches func(auditv1.Event) bool) bool { return !matches(event) }) {
			events = append(events, event)
		}
	}
	return events
}

// ByUserAgent matches requests whose user agent ends in this name, usually that of a
// controller.
func ByUserAgent(name string) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool { return strings.HasSuffix(event.UserAgent, "/"+name) }
}

// InNamespace matches requests for objects in a namespace.
func InNamespace(namespace string) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Namespace == namespace
	}
}

// Unauthorized matches requests that RBAC denied, but not those that admission denied.
func Unauthorized(event auditv1.Event) bool {
	return event.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Call returns the verb and the resource of a request, for example "patch foos/status".
func Call(event auditv1.Event) string {
	if event.ObjectRef == nil {
		return event.Verb + " " + event.RequestURI
	}
	call := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		call += "/" + event.ObjectRef.Subresource
	}
	return call
}
