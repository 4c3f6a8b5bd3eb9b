// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// watches are the watches that each controller of Foos and Icecreams needs.
var watches = map[string][]string{
	framework.Foos.Controller:      {"watch foos", "watch deployments"},
	framework.Icecreams.Controller: {"watch icecreams", "watch deployments", "watch replicasets?labelSelector=controller", "watch pods?labelSelector=controller"},
	framework.Aggregator:           {"watch foos", "watch icecreams", "watch deployments", "watch replicasets?labelSelector=controller", "watch pods?labelSelector=controller"},
}

// TestOnlyNeededResourcesAreWatched starts the daemon with different selections of these controllers.
func TestOnlyNeededResourcesAreWatched(t *testing.T) {
	a, b, c := framework.Foos.Controller, framework.Icecreams.Controller, framework.Aggregator
	all := "*"
	for _, name := range framework.Names() {
		if watches[name] == nil {
			all += ",-" + name
		}
	}
	selections := map[string][]string{
		all:            {a, b, c},
		a:              {a},
		c:              {c},
		a + "," + c:    {a, c},
		b + "," + c:    {b, c},
		all + ",-" + c: {a, b},
	}
	checks := map[string]func() error{}
	for selection, enabled := range selections {
		want := map[string]int{}
		for _, name := range enabled {
			for _, call := range watches[name] {
				want[call] = 1
			}
		}
		if len(enabled) == 2 { // the aggregator leaves out a kind whose own controller is disabled
			if !slices.Contains(enabled, a) {
				delete(want, "watch foos")
			}
			if !slices.Contains(enabled, b) {
				delete(want, "watch icecreams")
			}
		}
		begin := time.Now()
		server := framework.StartDaemon(t, "--controllers="+selection)
		server.Stop()
		end := time.Now()
		checks[selection] = func() error {
			got, err := readsBetween(begin, end)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				err = errors.New(diff)
			}
			return err
		}
		// A watch is in the audit log once it has ended.
		clustertest.WaitUntil(t, "with --controllers="+selection+" only the needed watches exist", func(context.Context) error { return checks[selection]() })
	}
	for selection, check := range checks {
		if err := check(); err != nil {
			t.Errorf("unexpected reads with --controllers=%s: %v", selection, err)
		}
	}
}

// TestReplicaSetsAreReadAsMetadata uses a proxy, because the audit log lacks this
// information.
func TestReplicaSetsAreReadAsMetadata(t *testing.T) {
	proxy := clustertest.StartDelayer(t, framework.Cluster())
	framework.StartDaemon(t, "--kubeconfig="+proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName))
	accept, ok := proxy.Accepts.Load("/apis/apps/v1/replicasets")
	if !ok || !strings.Contains(strings.Split(accept.(string), ",")[0], ";as=PartialObjectMetadata;") {
		t.Errorf("the watch of ReplicaSets accepts %q, want metadata", accept)
	}
}

// readsBetween counts the requests of informers that were received in a period and have
// ended. If the API server does not stream lists, the default of v1.33, the refused watches
// and the lists are left out.
func readsBetween(begin, end time.Time) (map[string]int, error) {
	events, err := framework.Cluster().AuditEvents(cluster.ByUserAgent("informers"), func(event auditv1.Event) bool {
		at := event.RequestReceivedTimestamp.Time
		return at.After(begin) && at.Before(end)
	})
	reads, refused := map[string]int{}, map[string]int{}
	for _, event := range events {
		read := cluster.Call(event)
		if uri, err := url.Parse(event.RequestURI); err == nil && uri.Query().Has("labelSelector") {
			read += "?labelSelector=" + uri.Query().Get("labelSelector")
		}
		switch code := event.ResponseStatus.Code; {
		case code == http.StatusUnprocessableEntity:
			refused[read]++
		case code < http.StatusBadRequest: // but not while it begins to serve a CRD
			reads[read]++
		}
	}
	for read, times := range refused {
		list := "list " + strings.TrimPrefix(read, "watch ")
		if reads[list] -= times; reads[list] == 0 {
			delete(reads, list)
		}
		reads[read] = max(reads[read], 1) // it may be stopped before it opens another
	}
	return reads, err
}
