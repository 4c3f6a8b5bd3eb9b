// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditEvents returns the requests that the audit log has so far and that match
// all conditions, in the order in which they were answered.
func (c *Cluster) AuditEvents(conditions ...func(auditv1.Event) bool) ([]auditv1.Event, error) {
	file, err := os.Open(c.AuditLog)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	var events []auditv1.Event
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return events, nil // the last line may be in the middle of being written
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decoding the audit log: %w", err)
		}
		if event.Stage == auditv1.StageResponseComplete && !slices.ContainsFunc(conditions, func(matches func(auditv1.Event) bool) bool { return !matches(event) }) {
			events = append(events, event)
		}
	}
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
