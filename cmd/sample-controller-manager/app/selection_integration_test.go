// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// controllers are the controllers of Foos and Icecreams, with the watches that each needs.
var controllers = map[string][]string{
	foos.Controller:      {"watch foos", "watch deployments"},
	icecreams.Controller: {"watch icecreams", "watch deployments", "watch replicasets?labelSelector=controller", "watch pods?labelSelector=controller"},
	aggregator:           {"watch foos", "watch icecreams", "watch deployments", "watch replicasets?labelSelector=controller", "watch pods?labelSelector=controller"},
}

// TestOnlyNeededResourcesAreWatched starts the daemon with every selection of these controllers.
func TestOnlyNeededResourcesAreWatched(t *testing.T) {
	a, b, c := foos.Controller, icecreams.Controller, aggregator
	all := "*"
	for _, name := range names() {
		if controllers[name] == nil {
			all += ",-" + name
		}
	}
	selections := map[string][]string{
		all:            {a, b, c},
		a:              {a},
		b:              {b},
		c:              {c},
		a + "," + b:    {a, b},
		a + "," + c:    {a, c},
		b + "," + c:    {b, c},
		all + ",-" + a: {b, c},
		all + ",-" + b: {a, c},
		all + ",-" + c: {a, b},
	}
	checks := map[string]func() error{}
	for selection, enabled := range selections {
		want := map[string]int{}
		for _, name := range enabled {
			for _, call := range controllers[name] {
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
		server := startDaemon(t, "--controllers="+selection)
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
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
	proxy := clustertest.StartDelayer(t, shared.Cluster())
	startDaemon(t, "--kubeconfig="+proxy.Kubeconfig(t, namespace, namespace))
	accept, ok := proxy.Accepts.Load("/apis/apps/v1/replicasets")
	if !ok || !strings.Contains(strings.Split(accept.(string), ",")[0], ";as=PartialObjectMetadata;") {
		t.Errorf("the watch of ReplicaSets accepts %q, want metadata", accept)
	}
}

// TestDisablingOneControllerLeavesOthersIntact disables one controller after the other,
// with existing and new objects.
func TestDisablingOneControllerLeavesOthersIntact(t *testing.T) {
	all := sideBySide(t)
	server := startDaemon(t, "--status-aggregation-interval=100ms")
	pods := func(name string, count int) {
		for _, k := range all {
			rs, err := shared.Kube().AppsV1().ReplicaSets(k.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			createPod(t, k.ns, fmt.Sprintf("%s-%d", name, count), "node-1", k.labels(name), controlledBy(rs))
		}
	}
	for _, k := range all {
		k.createServed(t, k.ns, "a")
	}
	pods("a", 1)
	for _, k := range all {
		k.waitTotal(t, k.ns, "a", 1)
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
	}
	count := 1
	for _, disabled := range slices.Sorted(maps.Keys(controllers)) {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		calls, summaries := map[string]map[string]int{}, map[string]*workloadv1alpha1.PodSummary{}
		for _, k := range all {
			calls[k.Kind] = callsBy(t, disabled, k.ns)
			summaries[k.Kind] = k.MustGet(t, k.ns, "a").Status.Pods
		}
		server = startDaemon(t, "--status-aggregation-interval=100ms", "--controllers=*,-"+disabled)
		count++
		added := fmt.Sprintf("new-%d", count)
		for _, k := range all {
			if err := k.TryPatch(t.Context(), k.ns, "a", fmt.Sprintf(`{"spec":{"replicas":%d}}`, count)); err != nil {
				t.Fatal(err)
			}
			object := k.Create(t, k.ns, added, 1)
			if k.Controller == disabled {
				createDeployment(t, k.ns, added, k.labels(added), k.controlledBy(object))
			}
			k.waitReplicas(t, k.ns, added, 1)
			createReplicaSet(t, k.ns, added, k.labels(added), controlledBy(getDeployment(t, k.ns, added)))
		}
		pods("a", count)
		pods(added, 1)
		for _, k := range all {
			if k.Controller != disabled {
				k.waitReplicas(t, k.ns, "a", int32(count))
				k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
				k.waitCondition(t, k.ns, added, "Reconciling", "Progressing")
			}
			if disabled != aggregator && disabled != k.Controller { // the aggregator leaves out the kind
				k.waitTotal(t, k.ns, "a", count)
				k.waitTotal(t, k.ns, added, 1)
			}
		}
		if disabled != icecreams.Controller {
			waitPlacements(t, all[1].ns, "a", count)
			waitPlacements(t, all[1].ns, added, 1)
		}

		// The fields of the disabled controller are unchanged.
		for _, k := range all {
			if diff := cmp.Diff(calls[k.Kind], callsBy(t, disabled, k.ns)); diff != "" {
				t.Errorf("disabled %s made calls (-before +after):\n%s", disabled, diff)
			}
			object, created := k.MustGet(t, k.ns, "a"), k.MustGet(t, k.ns, added)
			switch disabled {
			case aggregator:
				if diff := cmp.Diff(summaries[k.Kind], object.Status.Pods); diff != "" {
					t.Errorf("status.pods of the %s changed without the aggregator:\n%s", k.Kind, diff)
				}
				if p := created.Status.Pods; p != nil {
					t.Errorf("status.pods of a new %s is %+v without the aggregator, want none", k.Kind, p)
				}
			case k.Controller:
				if got := *getDeployment(t, k.ns, "a").Spec.Replicas; got != int32(count-1) {
					t.Errorf("Deployment of the %s has %d replicas without %s, want %d as before", k.Kind, got, disabled, count-1)
				}
				if object.Status.ObservedGeneration != object.Generation-1 || created.Status.ObservedGeneration > 0 {
					t.Errorf("the conditions of the %s were written without %s", k.Kind, disabled)
				}
			}
		}
	}
}

func (k kind) waitTotal(t *testing.T, ns, name string, total int) {
	t.Helper()
	k.waitSummary(t, ns, name, fmt.Sprintf("%d Pods", total), func(pods *workloadv1alpha1.PodSummary) error {
		if int(pods.Total) != total {
			return fmt.Errorf("got %q", pods.Summary)
		}
		if object := k.MustGet(t, ns, name); pods.ObservedGeneration != object.Generation {
			return fmt.Errorf("generation %d, want %d", pods.ObservedGeneration, object.Generation)
		}
		return nil
	})
}

// readsBetween counts the requests of informers that were received in a period and have
// ended. If the API server does not stream lists, the default of v1.33, the refused watches
// and the lists are left out.
func readsBetween(begin, end time.Time) (map[string]int, error) {
	events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent("informers"), func(event auditv1.Event) bool {
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
