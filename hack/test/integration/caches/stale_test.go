// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestRefusedWriteIsNotRepeatedWithDelayedWatch holds the watch of a write by others until the
// daemon's write was refused and its object synced again.
func TestRefusedWriteIsNotRepeatedWithDelayedWatch(t *testing.T) {
	all := framework.SideBySide(t)
	delayer := clustertest.StartDelayer(t, framework.Cluster(), "/apis/apps/v1/deployments")
	server := framework.StartDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, framework.DaemonName, framework.DaemonName))
	names := []string{"a", "b", "c"} // of each kind
	for _, k := range all {
		for _, name := range names {
			k.Create(t, k.Ns, name, 1)
			k.WaitCondition(t, k.Ns, name, "Reconciling", "Progressing")
			framework.BeReady(t, k.Ns, name)
			k.WaitCondition(t, k.Ns, name, "Ready", "Available") // the cache has its Deployment
		}
		keepTouching(t, k.Kind, k.Ns, names)
	}
	for _, k := range all {
		for _, name := range names {
			release := delayer.Hold()
			framework.Kubectl(t, "-n", k.Ns, "label", "deployment", name, "team=blue")
			framework.Kubectl(t, "-n", k.Ns, "scale", k.Singular, name, "--replicas=3")
			waitRefusedPatch(t, k.Kind, k.Ns, name)
			before := staleSyncs(k.Kind, server)
			clustertest.WaitUntil(t, "the object is synced again", func(context.Context) error {
				if n := staleSyncs(k.Kind, server) - before; n < 3 {
					return fmt.Errorf("%d syncs were postponed", n)
				}
				return nil
			})
			release()
		}
	}
	for _, k := range all {
		for _, name := range names {
			k.WaitReplicas(t, k.Ns, name, 3)
			k.WaitCondition(t, k.Ns, name, "Reconciling", "Progressing")
		}
	}
	for _, k := range all {
		wantWritten(t, k.Kind, k.Ns, names, map[string]int{"create deployments": 1, "refused: patch deployments": 1, "patch deployments": 1, k.PatchStatus(): 3})
	}
}

// writtenVersion returns the resourceVersion that a write is for.
func writtenVersion(t *testing.T, event auditv1.Event) string {
	t.Helper()
	if event.RequestObject == nil {
		t.Fatalf("the audit log has no body of %s %s", cluster.Call(event), event.ObjectRef.Name)
	}
	var patch []struct {
		Path  string
		Value any
	}
	if err := json.Unmarshal(event.RequestObject.Raw, &patch); err != nil {
		t.Fatalf("%s %s is no JSON patch: %v", cluster.Call(event), event.ObjectRef.Name, err)
	}
	for _, operation := range patch {
		if version, ok := operation.Value.(string); ok && operation.Path == "/metadata/resourceVersion" {
			return version
		}
	}
	t.Fatalf("%s %s has no resourceVersion", cluster.Call(event), event.ObjectRef.Name)
	return ""
}

// waitRefusedPatch waits until the API server has refused a patch of the object's Deployment by the
// kind's controller, because it was for an earlier version.
func waitRefusedPatch(t *testing.T, k framework.Kind, ns, name string) {
	t.Helper()
	clustertest.WaitUntil(t, "the patch of Deployment "+name+" is refused", func(context.Context) error {
		own := cluster.ByUserAgent(k.Controller)
		refused := framework.Audit(t, own, cluster.InNamespace(ns), func(event auditv1.Event) bool {
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
func keepTouching(t *testing.T, k framework.Kind, ns string, names []string) {
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
func wantWritten(t *testing.T, k framework.Kind, ns string, names []string, want map[string]int) {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns), framework.IsWrite)
	written, refused := map[string]map[string]int{}, map[string]int{}
	for _, event := range events {
		name, call := event.ObjectRef.Name, cluster.Call(event)
		if written[name] == nil {
			written[name] = map[string]int{}
		}
		switch code := event.ResponseStatus.Code; {
		case code == http.StatusConflict && (event.Verb == "patch" || event.Verb == "update"):
			refused[fmt.Sprintf("%s %s for version %s", call, name, writtenVersion(t, event))]++
			if call != k.PatchStatus() {
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

// staleSyncs returns the number of syncs of this process that were postponed because of a
// stale cache.
func staleSyncs(k framework.Kind, server *framework.Replica) int {
	server.T.Helper()
	return int(server.Value(fmt.Sprintf(`sample_controller_manager_sync_total{controller=%q,result="stale"}`, k.Controller)))
}
