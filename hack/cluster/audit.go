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
	// answerTimeout is how long the API server lets a request take, and a little. One
	// that was killed answers nothing.
	answerTimeout = 70 * time.Second
)

// auditLog is what has been read of the audit log. Tests ask for it again and again
// while it grows: each line is decoded once.
type auditLog struct {
	mutex      sync.Mutex
	offset     int64
	events     []auditv1.Event         // of what was answered
	watches    []auditv1.Event         // that were opened
	unanswered map[types.UID]time.Time // when what is no watch was received
}

// read decodes what was written since the last time.
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
			return nil // the last line may be in the middle of being written
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

// answered returns all events once what was received by now has been answered, but for
// what was received so long ago that it never will be. They are read-only.
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

// state reads what was written since the last time, and returns all that was answered
// and when that was received that was not.
func (l *auditLog) state(path string) ([]auditv1.Event, map[types.UID]time.Time, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.read(path); err != nil {
		return nil, nil, err
	}
	return l.events, maps.Clone(l.unanswered), nil
}

// AuditEvents returns the requests that were answered so far and that match all
// conditions, in the order in which they were answered. What a request has written
// may be seen before it is answered, and so before the log tells how: requests that
// the API server has received by now are waited for.
func (c *Cluster) AuditEvents(conditions ...func(auditv1.Event) bool) ([]auditv1.Event, error) {
	all, err := c.audit.answered(c.AuditLog, answerTimeout)
	if err != nil {
		return nil, err
	}
	return matching(all, conditions), nil
}

// AuditWatches returns the watches that were opened so far and that match all
// conditions, in the order in which they were. [Cluster.AuditEvents] tells of one only
// when it has ended.
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

// ByUserAgent matches requests whose user agent ends in the name of a controller,
// or of whatever else gave its name to a client.
func ByUserAgent(name string) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool { return strings.HasSuffix(event.UserAgent, "/"+name) }
}

// InNamespace matches requests for objects of a namespace.
func InNamespace(namespace string) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Namespace == namespace
	}
}

// Unauthorized matches requests that RBAC denied, not those that admission did.
func Unauthorized(event auditv1.Event) bool {
	return event.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Call names the verb and the resource of a request: "patch foos/status".
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
