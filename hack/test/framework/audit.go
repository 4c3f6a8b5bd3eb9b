// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// ScalesDeployment matches the daemon's requests that scale a Deployment.
func ScalesDeployment(ns, name string) func(r *http.Request, body []byte) bool {
	return func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/"+ns+"/deployments/"+name)
	}
}

// Writes counts the writes of the kind's controller in a namespace that match the conditions,
// by call. It does not include the aggregator's writes.
func (k Kind) Writes(t *testing.T, ns string, conditions ...func(auditv1.Event) bool) map[string]int {
	t.Helper()
	calls := map[string]int{}
	for _, event := range Audit(t, append(conditions, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns))...) {
		if event.Verb != "list" { // the controller lists an object to read it again
			calls[cluster.Call(event)]++
		}
	}
	return calls
}

// Requests counts the daemon's requests in a namespace by call, and rejected ones also by
// code. The daemon watches all namespaces at once, so these are its writes.
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

// DaemonEvents returns the daemon's requests in a namespace.
func DaemonEvents(t *testing.T, ns string) []auditv1.Event {
	t.Helper()
	return Audit(t, cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, DaemonName+"/")
	})
}

// InformerLists returns the lists that informers have requested since a time, streamed or not.
func InformerLists(t *testing.T, since time.Time) []auditv1.Event {
	t.Helper()
	informers := cluster.ByUserAgent("informers")
	recent := func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(since) }
	streamed, err := Cluster().AuditWatches(informers, recent, func(event auditv1.Event) bool {
		return hasQuery(event, "sendInitialEvents", "true")
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(streamed, Audit(t, informers, recent, func(event auditv1.Event) bool {
		// An informer whose watch ended asks for one object, to compare versions. It does not
		// fill its cache with it.
		return event.Verb == "list" && !hasQuery(event, "limit", "1")
	})...)
}

func hasQuery(event auditv1.Event, name, value string) bool {
	u, err := url.Parse(event.RequestURI)
	return err == nil && u.Query().Get(name) == value
}

// WantCreatedOnce checks that no Deployment was created twice.
func WantCreatedOnce(t *testing.T, requests []auditv1.Event) {
	t.Helper()
	created := sets.New[string]()
	for _, event := range requests {
		if cluster.Call(event) != "create deployments" || event.ResponseStatus == nil || event.ResponseStatus.Code >= 300 {
			continue
		}
		name := event.ObjectRef.Namespace + "/" + event.ObjectRef.Name
		if created.Has(name) {
			t.Errorf("Deployment %s was created again", name)
		}
		created.Insert(name)
	}
}
