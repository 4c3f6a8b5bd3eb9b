// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// late is the delay of the daemon's watch of one resource.
const late = 10 * time.Second

// inNamespace is a kind with a namespace for this test only.
type inNamespace struct {
	kind
	ns string
}

// sideBySide returns each kind with a namespace.
func sideBySide(t *testing.T) (all []inNamespace) {
	t.Helper()
	for _, k := range kinds {
		all = append(all, inNamespace{k, newNamespace(t)})
	}
	return all
}

// TestOwnWritesAreSeenDespiteDelayedWatch delays the watch of what the daemon has created,
// and enqueues the objects all the time.
func TestOwnWritesAreSeenDespiteDelayedWatch(t *testing.T) {
	all := sideBySide(t)
	scraper := token(t, newNamespace(t), "sample-controller-manager-metrics-reader")
	delayer := clustertest.StartDelayer(t, shared.Cluster(), "/apis/apps/v1/deployments")
	server := startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace))
	names := []string{"a", "b", "c"} // of each kind
	before := map[string]int{}
	for _, k := range all {
		before[k.Kind] = k.staleSyncs(t, server, scraper)
	}
	delayer.By(late)
	for _, k := range all {
		for _, name := range names {
			k.Create(t, k.ns, name, 1)
		}
		k.keepTouching(t, k.ns, names)
	}
	var begin time.Time // before the last event
	for _, k := range all {
		for _, name := range names {
			k.waitCondition(t, k.ns, name, "Reconciling", "Progressing")
			begin = time.Now()
			beReady(t, k.ns, name)
		}
	}
	for _, k := range all {
		for _, name := range names {
			k.waitCondition(t, k.ns, name, "Ready", "Available")
		}
	}
	if took := time.Since(begin); took < late {
		t.Errorf("the daemon saw available Deployments after %v: its watch was not delayed", took)
	}
	for _, k := range all {
		k.wantWritten(t, k.ns, names, map[string]int{"create deployments": 1, k.patchStatus(): 2})
		stale := k.staleSyncs(t, server, scraper) - before[k.Kind]
		if stale < len(names) {
			t.Errorf("%d syncs postponed for a stale cache, want at least one for each %s", stale, k.Kind)
		}
		t.Logf("%s: %d syncs postponed", k.Kind, stale)
	}
}

// TestRefusedWriteIsNotRepeatedWithDelayedWatch holds the watch of a write by others until the
// daemon's write was refused and its object synced again.
func TestRefusedWriteIsNotRepeatedWithDelayedWatch(t *testing.T) {
	all := sideBySide(t)
	delayer := clustertest.StartDelayer(t, shared.Cluster(), "/apis/apps/v1/deployments")
	server := startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace))
	names := []string{"a", "b", "c"} // of each kind
	for _, k := range all {
		for _, name := range names {
			k.Create(t, k.ns, name, 1)
			k.waitCondition(t, k.ns, name, "Reconciling", "Progressing")
			beReady(t, k.ns, name)
			k.waitCondition(t, k.ns, name, "Ready", "Available") // the cache has its Deployment
		}
		k.keepTouching(t, k.ns, names)
	}
	scraper := token(t, newNamespace(t), "sample-controller-manager-metrics-reader")
	for _, k := range all {
		for _, name := range names {
			release := delayer.Hold()
			kubectl(t, "-n", k.ns, "label", "deployment", name, "team=blue")
			kubectl(t, "-n", k.ns, "scale", k.Singular, name, "--replicas=3")
			k.waitRefusedPatch(t, k.ns, name)
			before := k.staleSyncs(t, server, scraper)
			clustertest.WaitUntil(t, "the object is synced again", func(context.Context) error {
				if n := k.staleSyncs(t, server, scraper) - before; n < 3 {
					return fmt.Errorf("%d syncs were postponed", n)
				}
				return nil
			})
			release()
		}
	}
	for _, k := range all {
		for _, name := range names {
			k.waitReplicas(t, k.ns, name, 3)
			k.waitCondition(t, k.ns, name, "Reconciling", "Progressing")
		}
	}
	for _, k := range all {
		k.wantWritten(t, k.ns, names, map[string]int{"create deployments": 1, "refused: patch deployments": 1, "patch deployments": 1, k.patchStatus(): 3})
	}
}

// TestDeletedObjectGetsNothingWithDelayedWatch makes the daemon see the deletion of a
// Deployment, and confirm its cache, before it sees the deletion of the owner.
func TestDeletedObjectGetsNothingWithDelayedWatch(t *testing.T) {
	all := sideBySide(t)
	var paths []string
	for _, k := range all {
		paths = append(paths, "/apis/"+k.apiVersion()+"/"+k.Resource)
	}
	delayer := clustertest.StartDelayer(t, shared.Cluster(), paths...)
	startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace))
	for _, k := range all {
		k.catchUp(t)
		k.Create(t, k.ns, "a", 1)
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
		beReady(t, k.ns, "a")
		k.waitCondition(t, k.ns, "a", "Ready", "Available")
		k.waitPods(t, k.ns, "a", "none")
		k.Create(t, k.ns, "later", 1) // once it is Ready, the cache has everything from before
		k.waitCondition(t, k.ns, "later", "Reconciling", "Progressing")
	}
	release := delayer.Hold()
	for _, k := range all {
		kubectl(t, "-n", k.ns, "delete", k.Singular, "a")
		kubectl(t, "-n", k.ns, "delete", "deployment", "a")
	}
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon asks whether the "+k.Kind+" exists", func(context.Context) error {
			if calls := k.calls(t, k.ns); calls["list "+k.Resource] == 0 {
				return fmt.Errorf("calls: %v", calls)
			}
			return nil
		})
		k.Create(t, k.ns, "last", 1) // once it is Ready, the cache has the deletion, too
	}
	release()
	for _, k := range all {
		k.waitCondition(t, k.ns, "last", "Reconciling", "Progressing")
		k.wantCalls(t, k.ns,
			"create deployments", k.patchStatus(), k.patchStatus(),
			"create deployments", k.patchStatus(),
			"list "+k.Resource, "create deployments", k.patchStatus())
	}
}

// waitRefusedPatch waits until the API server has refused a patch of the object's Deployment by the
// kind's controller, because it was for an earlier version.
func (k kind) waitRefusedPatch(t *testing.T, ns, name string) {
	t.Helper()
	clustertest.WaitUntil(t, "the patch of Deployment "+name+" is refused", func(context.Context) error {
		own := cluster.ByUserAgent(k.Controller)
		refused := shared.Audit(t, own, cluster.InNamespace(ns), func(event auditv1.Event) bool {
			return cluster.Call(event) == "patch deployments" && event.ObjectRef.Name == name &&
				event.ResponseStatus.Code == http.StatusConflict
		})
		if len(refused) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
}

// keepTouching makes an irrelevant change to objects every 100 ms until the test ends.
func (k kind) keepTouching(t *testing.T, ns string, names []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	for _, name := range names {
		touching.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_ = k.Touch(ctx, ns, name, fmt.Sprint(i)) // only the event matters
				time.Sleep(100 * time.Millisecond)        // a ticker would follow slow calls with quick ones
			}
		})
	}
	t.Cleanup(func() {
		stop()
		touching.Wait()
	})
}

// wantWritten compares the numbers of writes of the kind's controller for each object,
// whose Deployment has the same name. The number of status conflicts is random, because the
// objects change all the time. But no write may be repeated for a version that was refused.
func (k kind) wantWritten(t *testing.T, ns string, names []string, want map[string]int) {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns), isWrite)
	written, refused := map[string]map[string]int{}, map[string]int{}
	for _, event := range events {
		name, call := event.ObjectRef.Name, cluster.Call(event)
		if written[name] == nil {
			written[name] = map[string]int{}
		}
		switch code := event.ResponseStatus.Code; {
		case code == http.StatusConflict && (event.Verb == "patch" || event.Verb == "update"):
			refused[fmt.Sprintf("%s %s for version %s", call, name, writtenVersion(t, event))]++
			if call != k.patchStatus() {
				written[name]["refused: "+call]++
			}
		case code >= 300:
			t.Errorf("%s %s was refused with %d", call, name, code)
		default:
			written[name][call]++
		}
	}
	for _, name := range names {
		if diff := cmp.Diff(want, written[name]); diff != "" {
			t.Errorf("unexpected writes for %s (-want +got):\n%s", name, diff)
		}
	}
	for write, times := range refused {
		if times > 1 {
			t.Errorf("%s refused %d times", write, times)
		}
	}
	t.Logf("refused: %q", slices.Sorted(maps.Keys(refused)))
}

// writtenVersion returns the resourceVersion that a write is for.
func writtenVersion(t *testing.T, event auditv1.Event) string {
	t.Helper()
	if event.RequestObject == nil {
		t.Fatalf("the audit log has no body of %s %s", cluster.Call(event), event.ObjectRef.Name)
	}
	var object struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(event.RequestObject.Raw, &object); err != nil || object.Metadata.ResourceVersion == "" {
		t.Fatalf("%s %s has no resourceVersion: %v", cluster.Call(event), event.ObjectRef.Name, err)
	}
	return object.Metadata.ResourceVersion
}

// staleSyncs returns the number of syncs of this process that were postponed because of a
// stale cache.
func (k kind) staleSyncs(t *testing.T, server *apptesting.Server, token string) int {
	t.Helper()
	body := get(t, server, "/metrics", token, http.StatusOK)
	match := regexp.MustCompile(`(?m)^sample_controller_manager_sync_total\{controller="` + k.Controller + `",result="stale"\} (\d+)$`).FindStringSubmatch(body)
	if match == nil {
		t.Fatal("no such metric")
	}
	total, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return total
}
