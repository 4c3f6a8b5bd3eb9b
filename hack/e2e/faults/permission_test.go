// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// healedWithin is within what a controller is right again after it was granted what it lacks.
const healedWithin = 30 * time.Second

// TestFaultPermissionMissing takes the right to read a kind from the daemon, before it
// starts and while it runs, then the right to write its status.
func TestFaultPermissionMissing(t *testing.T) {
	peer := framework.OfPeer(t, stockWithoutPermission)

	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	grant := framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
	link := clustertest.StartLink(t, framework.Cluster())
	started := time.Now()
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName))
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	framework.Foos.WaitPodsReported(t, ns, "a", 1)
	others := time.Since(started)
	r.WaitState(framework.Icecreams.Controller, "Degraded", "not permitted to watch "+framework.Icecreams.CRD())
	r.WaitState(framework.Foos.Controller, "Running")
	framework.Icecreams.Create(t, ns, "b", 1)
	granted := grant()
	atStart := r.WaitState(framework.Icecreams.Controller, "Running").Sub(granted)
	framework.WantSoon(t, "to heal after the grant", atStart, healedWithin)
	framework.Icecreams.WaitReady(t, ns, "b", 1)
	r.WaitState(framework.Aggregator, "Running")
	r.Ready()

	// A watch that is open goes on until something ends it.
	grant = framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
	link.Cut()
	r.WaitState(framework.Icecreams.Controller, "Degraded", "not permitted to watch "+framework.Icecreams.CRD())
	framework.Foos.Create(t, ns, "c", 1)
	framework.Foos.WaitReady(t, ns, "c", 1)
	framework.Icecreams.Create(t, ns, "d", 1)
	granted = grant()
	live := r.WaitState(framework.Icecreams.Controller, "Running").Sub(granted)
	framework.WantSoon(t, "to heal after the grant", live, healedWithin)
	framework.Icecreams.WaitReady(t, ns, "d", 1)

	grant = framework.RevokeFromDaemon(t, framework.Icecreams.May("patch", "/status"))
	framework.Icecreams.Create(t, ns, "e", 1)
	r.WaitState(framework.Icecreams.Controller, "Degraded", "may not patch icecreams/status."+framework.Icecreams.Group, ns)
	framework.Foos.Create(t, ns, "f", 1)
	framework.Foos.WaitReady(t, ns, "f", 1)
	r.WaitState(framework.Foos.Controller, "Running")
	granted = grant()
	framework.Icecreams.WaitReady(t, ns, "e", 1)
	status := time.Since(granted)
	framework.WantSoon(t, "to write the status after the grant", status, healedWithin)
	r.WaitState(framework.Icecreams.Controller, "Running")
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D4", Fault: "a permission is missing for one controller",
		Ours: fmt.Sprintf("others ready after %s; Degraded, with verb and resource; healed %s after the grant at start, %s live, %s for writes",
			framework.Seconds(others), framework.Seconds(atStart), framework.Seconds(live), framework.Seconds(status)),
		Peer: peer,
	})
}

// stockWithoutPermission has sample-controller start without the right to watch
// Deployments, and says what comes of it.
func stockWithoutPermission(t *testing.T) string {
	t.Helper()
	const name = "stock-sample-controller"
	ns := framework.NewNamespace(t)
	account, err := framework.Kube().CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, err := framework.Kube().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{framework.Foos.Group}, Resources: []string{"foos", "foos/status", "foos/finalizers"}, Verbs: []string{"*"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := framework.Kube().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: account.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := framework.Kube().RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), ns, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	grant := clustertest.Revoke(t, framework.Kube(), role.Name, "system:serviceaccount:"+ns+":"+account.Name,
		clustertest.Right{Verb: "list", Group: "apps", Resource: "deployments"}, clustertest.Right{Verb: "watch", Group: "apps", Resource: "deployments"})
	p := framework.StartProgram(t, framework.SampleController(t), "-kubeconfig="+kubeconfig)
	waitBackedOff(p)
	framework.Foos.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	return stockServes(t, p, ns, "a", "the grant, nothing before", grant())
}
