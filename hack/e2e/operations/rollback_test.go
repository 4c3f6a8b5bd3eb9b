// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// deletesFormer is a commit whose daemon deletes the former Deployment after a rename.
const deletesFormer = "9d4351bc6dfeebe82cbbfe2d5dd8b11120728007"

// TestRollbackLosesNoPod goes back to an older daemon after renames, with the roles and the cage of
// this version, and then forward again. The older daemon tries to delete former Deployments.
func TestRollbackLosesNoPod(t *testing.T) {
	framework.Long(t)
	older := framework.BuildCommit(t, deletesFormer)
	framework.FreeLease(t)
	ns := map[framework.Kind]string{}
	ours := framework.StartReplica(t, framework.OneWorker...).Ready()
	for _, k := range framework.Kinds {
		ns[k] = framework.NewNamespace(t)
		k.CreateNaming(t, ns[k], "a", "first")
		k.WaitReady(t, ns[k], "a", 1)
		k.Patch(t, ns[k], "a", `{"spec":{"deploymentName":"second"}}`)
		waitFormerNamed(t, k, ns[k])
	}
	ours.Stop()
	before := map[framework.Kind]framework.Snapshot{}
	for k, ns := range ns {
		before[k] = framework.TakeSnapshot(t, ns)
		framework.ExpectDenialsIn(ns)
	}

	theirs := framework.StartReplicaOf(t, older, framework.OneWorker...)
	for k, ns := range ns {
		clustertest.WaitUntil(t, "the older "+k.Controller+" may not delete a Deployment", func(context.Context) error {
			deletes := func(event auditv1.Event) bool { return cluster.Call(event) == "delete deployments" }
			ours := cluster.ByUserAgent(k.Controller)
			if len(framework.Audit(t, ours, cluster.InNamespace(ns), framework.Denied, deletes)) == 0 {
				return errors.New("it has not tried")
			}
			return nil
		})
	}
	theirs.Stop()
	for k, ns := range ns {
		framework.WantSameSnapshot(t, "the older daemon", ns, before[k])
	}

	ours = framework.StartReplica(t, framework.OneWorker...).Ready()
	for _, k := range framework.Kinds {
		k.Patch(t, ns[k], "a", `{"metadata":{"labels":{"touched":"true"}}}`)
		waitFormerNamed(t, k, ns[k])
		k.WaitIdle(t)
		framework.WantSameSnapshot(t, "going forward again", ns[k], before[k])
	}
	ours.Stop()
}

// waitFormerNamed waits until the object is Ready with Deployment "second" and its status names
// "first" as the former one.
func waitFormerNamed(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	k.WaitReady(t, ns, "a", 1)
	k.WaitSays(t, ns, "a", "Ready", "Available", `the former Deployment "first" still runs`)
	k.WaitSays(t, ns, "a", "Ready", "Available", fmt.Sprintf("run kubectl -n %s delete deployment first", ns))
}
