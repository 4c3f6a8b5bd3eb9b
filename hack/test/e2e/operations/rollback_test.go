// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// deletesFormer is a commit whose daemon deletes the former Deployment after a rename.
const deletesFormer = "9d4351bc6dfeebe82cbbfe2d5dd8b11120728007"

// TestRollbackLosesNoPod goes back to an older daemon after renames, with the roles and the cage of
// this version, then with the cage alone, and then forward again. The older daemon tries to delete
// former Deployments.
func TestRollbackLosesNoPod(t *testing.T) {
	framework.Long(t)
	older := framework.BuildCommit(t, deletesFormer)
	framework.FreeLease(t)
	namespaces, before := map[framework.Kind]string{}, map[framework.Kind]framework.Snapshot{}
	ours := framework.StartReplica(t, framework.OneWorker...).Ready()
	for _, k := range framework.Kinds {
		ns := framework.NewNamespace(t)
		framework.ExpectDenialsIn(ns)
		k.CreateNaming(t, ns, "a", "first")
		k.WaitReady(t, ns, "a", 1)
		k.Patch(t, ns, "a", `{"spec":{"deploymentName":"second"}}`)
		waitFormerNamed(t, k, ns)
		namespaces[k], before[k] = ns, framework.TakeSnapshot(t, ns)
	}
	ours.Stop()

	theirs := framework.StartReplicaOf(t, older, framework.OneWorker...)
	for k, ns := range namespaces {
		waitDeleteDenied(t, k, ns, "cannot delete resource") // the roles
	}
	theirs.Stop()
	for _, ns := range namespaces {
		framework.Grant(t, ns,
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: framework.DaemonName, Name: framework.DaemonName},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"delete"}})
	}
	theirs = framework.StartReplicaOf(t, older, framework.OneWorker...)
	for k, ns := range namespaces {
		waitDeleteDenied(t, k, ns, framework.DaemonName+"-cage")
		framework.WantSameSnapshot(t, "the older daemon", ns, before[k])
	}
	theirs.Stop()

	ours = framework.StartReplica(t, framework.OneWorker...).Ready()
	for k, ns := range namespaces {
		waitFormerNamed(t, k, ns)
		k.WaitIdle(t)
		framework.WantSameSnapshot(t, "going forward again", ns, before[k])
	}
	ours.Stop()
}

// waitDeleteDenied waits until the API server has denied the controller the deletion of a
// Deployment, with a reason that contains these words.
func waitDeleteDenied(t *testing.T, k framework.Kind, ns, words string) {
	t.Helper()
	clustertest.WaitUntil(t, k.Controller+" may not delete a Deployment: "+words, func(context.Context) error {
		denied := framework.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns), framework.Denied)
		for _, event := range denied {
			if cluster.Call(event) == "delete deployments" && strings.Contains(event.ResponseStatus.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("denied were %d requests", len(denied))
	})
}

// waitFormerNamed waits until the object is Ready with Deployment "second" and its status names
// "first" as the former one.
func waitFormerNamed(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	k.WaitReady(t, ns, "a", 1)
	k.WaitSays(t, ns, "a", "Ready", "Available", `the former Deployment "first" still runs`)
	k.WaitSays(t, ns, "a", "Ready", "Available", fmt.Sprintf("run kubectl -n %s delete deployment first", ns))
}
