// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditLog is what has been read of the audit log. Tests ask for it again and again
// while it grows: each line is decoded once.
type auditLog struct {
	mutex  sync.Mutex
	offset int64
	events []auditv1.Event
}

// read decodes what was written since the last time and returns all events, which
// are read-only.
func (l *auditLog) read(path string) ([]auditv1.Event, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return l.events, nil // the last line may be in the middle of being written
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decoding the audit log: %w", err)
		}
		l.offset += int64(len(line))
		if event.Stage == auditv1.StageResponseComplete {
			l.events = append(l.events, event)
		}
	}
}

// AuditEvents returns the requests that the audit log has so far and that match
// all conditions, in the order in which they were answered.
func (c *Cluster) AuditEvents(conditions ...func(auditv1.Event) bool) ([]auditv1.Event, error) {
	all, err := c.audit.read(c.AuditLog)
	if err != nil {
		return nil, err
	}
	var events []auditv1.Event
	for _, event := range all {
		if !slices.ContainsFunc(conditions, func(matches func(auditv1.Event) bool) bool { return !matches(event) }) {
			events = append(events, event)
		}
	}
	return events, nil
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
