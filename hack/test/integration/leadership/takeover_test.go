// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestNewLeaderWithStaleCacheUndoesNothing starts a new leader whose cache lacks the
// changes of objects under its predecessor, but has the predecessor's writes for them.
func TestNewLeaderWithStaleCacheUndoesNothing(t *testing.T) {
	all := framework.SideBySide(t)
	var paths []string
	for _, k := range all {
		paths = append(paths, "/apis/"+k.APIVersion()+"/"+k.Resource)
	}
	stop := framework.StartReplica(t).Stop
	for _, k := range all {
		k.Create(t, k.Ns, "scaled", 1)
		k.Create(t, k.Ns, "renamed", 1)
		k.Create(t, k.Ns, "back", 2)
		for _, name := range []string{"scaled", "renamed", "back"} {
			k.WaitCondition(t, k.Ns, name, "Reconciling", "Progressing")
		}
		k.ChangeSpec(t, "back", `{"deploymentName":"there"}`)
		k.WaitReplicas(t, k.Ns, "there", 2)
		k.WaitCondition(t, k.Ns, "back", "Reconciling", "Progressing")
	}
	delayer := clustertest.StartDelayer(t, framework.Cluster(), paths...)
	// Without the aggregator: a refused write of the aggregator would pause the object.
	framework.StartDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, framework.DaemonName, framework.DaemonName),
		"--controllers="+framework.Foos.Controller+","+framework.Icecreams.Controller,
		framework.Foos.OneWorker(), framework.Icecreams.OneWorker())

	release := delayer.Hold()
	before := map[string]map[string]int{}
	for _, k := range all {
		k.ChangeSpec(t, "scaled", `{"replicas":3}`)
		k.ChangeSpec(t, "renamed", `{"deploymentName":"other"}`)
		k.ChangeSpec(t, "back", `{"deploymentName":"back"}`)
		k.WaitReplicas(t, k.Ns, "scaled", 3)
		k.WaitReplicas(t, k.Ns, "other", 1)
		k.WaitCondition(t, k.Ns, "back", "Reconciling", "Progressing")
		// A user deletes one former Deployment and scales down the other one.
		framework.Kubectl(t, "-n", k.Ns, "delete", "deployment", "renamed")
		framework.Kubectl(t, "-n", k.Ns, "scale", "deployment", "there", "--replicas=0")
		before[k.Kind.Kind] = k.Confirmations(t)
	}
	stop()
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon has found its cache of each "+k.Kind.Kind+" stale", func(context.Context) error {
			confirmations := k.Confirmations(t)
			for _, name := range []string{"scaled", "renamed", "back"} {
				if confirmations[name] == before[k.Kind.Kind][name] {
					return fmt.Errorf("not for %s: %v, before %v", name, confirmations, before[k.Kind.Kind])
				}
			}
			return nil
		})
	}
	release()
	for _, k := range all {
		k.Create(t, k.Ns, "last", 1) // once it is Ready, the cache has everything from before
		k.WaitCondition(t, k.Ns, "last", "Reconciling", "Progressing")
	}
	time.Sleep(time.Second) // no more writes may follow
	for _, k := range all {
		k.WantDeploymentWrites(t, map[string]int{
			"create scaled": 1, "patch scaled": 1,
			"create renamed": 1, "create other": 1,
			"create back": 1, "create there": 1,
			"create last": 1,
		})
		if got := framework.Deployment(t, k.Ns, "scaled").Generation; got != 2 {
			t.Errorf("the Deployment of a %s scaled once has generation %d, want 2", k.Kind.Kind, got)
		}
		k.ChangeSpec(t, "scaled", `{"replicas":5}`)
		k.WaitReplicas(t, k.Ns, "scaled", 5)
	}
}
