// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// ScalesDeployment matches the request by which the daemon scales a Deployment.
func ScalesDeployment(ns, name string) func(r *http.Request, body []byte) bool {
	return func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/"+ns+"/deployments/"+name)
	}
}

// Writes counts what the controller of the kind wrote in a namespace, by call, of all
// that matches the conditions. What the aggregator wrote is not among it.
func (k Kind) Writes(t *testing.T, ns string, conditions ...func(auditv1.Event) bool) map[string]int {
	t.Helper()
	events, err := Cluster().AuditEvents(append(conditions, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns))...)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, event := range events {
		if event.Verb != "list" { // it lists an object to look at it once more
			calls[cluster.Call(event)]++
		}
	}
	return calls
}

// Requests counts what the daemon has asked for in a namespace, by call, and by code
// where it was refused. It watches all namespaces at once, so these are its writes.
func Requests(t *testing.T, ns string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, event := range DaemonEvents(t, ns) {
		call := cluster.Call(event)
		if code := event.ResponseStatus.Code; code >= 300 {
			call += fmt.Sprintf(" (%d)", code)
		}
		counts[call]++
	}
	return counts
}

// DaemonEvents returns the requests of the daemon in a namespace.
func DaemonEvents(t *testing.T, ns string) []auditv1.Event {
	t.Helper()
	events, err := Cluster().AuditEvents(cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, DaemonName+"/")
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}
