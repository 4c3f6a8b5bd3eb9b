// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// healedWithin is within what a controller is right again after it was granted what it lacks.
const healedWithin = 30 * time.Second

// may is a right to something of the kind, or to its status.
func (k kind) may(verb, subresource string) clustertest.Right {
	return clustertest.Right{Verb: verb, Group: k.Group, Resource: k.resource + subresource}
}

// revokeFromDaemon takes rights from the daemon until it is told to give them back.
func revokeFromDaemon(t *testing.T, rights ...clustertest.Right) (grant func() time.Time) {
	t.Helper()
	provokeDenials(t, func(event auditv1.Event) bool {
		return event.ObjectRef != nil && slices.ContainsFunc(rights, func(r clustertest.Right) bool {
			resource := strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
			return r == clustertest.Right{Verb: event.Verb, Group: event.ObjectRef.APIGroup, Resource: resource}
		})
	})
	return clustertest.Revoke(t, kube, daemonName+"-controllers", daemonUser, rights...)
}

// TestFaultAPermissionIsMissing takes the right to read a kind from the daemon, before it
// starts and while it runs, then the right to write its status.
func TestFaultAPermissionIsMissing(t *testing.T) {
	peer := ofPeer(t, stockWithoutPermission)

	freeLease(t)
	ns := newNamespace(t)
	grant := revokeFromDaemon(t, icecreams.may("list", ""), icecreams.may("watch", ""))
	link := clustertest.StartLink(t, testCluster)
	started := time.Now()
	r := startReplicaWith(t, link.Kubeconfig(t, testCluster, daemonName, daemonName))
	foos.create(t, ns, "a", 1)
	foos.waitReady(t, ns, "a", 1)
	foos.waitTold(t, ns, "a", 1)
	others := time.Since(started)
	r.waitState(icecreams.controller, "Degraded", "not permitted to watch "+icecreams.crd())
	r.waitState(foos.controller, "Running")
	icecreams.create(t, ns, "b", 1)
	granted := grant()
	atStart := r.waitState(icecreams.controller, "Running").Sub(granted)
	wantSoon(t, "to heal after the grant", atStart, healedWithin)
	icecreams.waitReady(t, ns, "b", 1)
	r.waitState(aggregator, "Running")
	r.ready()

	// A watch that is open goes on until something ends it.
	grant = revokeFromDaemon(t, icecreams.may("list", ""), icecreams.may("watch", ""))
	link.Cut()
	r.waitState(icecreams.controller, "Degraded", "not permitted to watch "+icecreams.crd())
	foos.create(t, ns, "c", 1)
	foos.waitReady(t, ns, "c", 1)
	icecreams.create(t, ns, "d", 1)
	granted = grant()
	live := r.waitState(icecreams.controller, "Running").Sub(granted)
	wantSoon(t, "to heal after the grant", live, healedWithin)
	icecreams.waitReady(t, ns, "d", 1)

	grant = revokeFromDaemon(t, icecreams.may("patch", "/status"))
	icecreams.create(t, ns, "e", 1)
	r.waitState(icecreams.controller, "Degraded", "may not patch icecreams/status."+icecreams.Group, ns)
	foos.create(t, ns, "f", 1)
	foos.waitReady(t, ns, "f", 1)
	r.waitState(foos.controller, "Running")
	granted = grant()
	icecreams.waitReady(t, ns, "e", 1)
	status := time.Since(granted)
	wantSoon(t, "to write the status after the grant", status, healedWithin)
	r.waitState(icecreams.controller, "Running")
	r.stop()
	reportFault(t, faultRow{
		ID: "D4", Fault: "a permission is missing for one controller",
		Ours: fmt.Sprintf("others ready after %s; Degraded, with verb and resource; healed %s after the grant at start, %s live, %s for writes",
			seconds(others), seconds(atStart), seconds(live), seconds(status)),
		Peer: peer,
	})
}

// stockWithoutPermission has sample-controller start without the right to watch
// Deployments, and says what comes of it.
func stockWithoutPermission(t *testing.T) string {
	t.Helper()
	const name = "stock-sample-controller"
	ns := newNamespace(t)
	account, err := kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, err := kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{foos.Group}, Resources: []string{"foos", "foos/status", "foos/finalizers"}, Verbs: []string{"*"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: account.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := kube.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := testCluster.ServiceAccountKubeconfig(t.Context(), ns, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	grant := clustertest.Revoke(t, kube, role.Name, "system:serviceaccount:"+ns+":"+account.Name,
		clustertest.Right{Verb: "list", Group: "apps", Resource: "deployments"}, clustertest.Right{Verb: "watch", Group: "apps", Resource: "deployments"})
	p := startProgram(t, sampleController(t), "-kubeconfig="+kubeconfig)
	p.waitBackedOff()
	foos.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	return stockServes(t, p, ns, "a", "the grant, nothing before", grant())
}
