// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestReplicaDeniedLeaseUpdatesIsHealthy revokes the leader's permission to update the
// Lease.
func TestReplicaDeniedLeaseUpdatesIsHealthy(t *testing.T) {
	clustertest.Long(t)
	ownCluster(t) // the audit log of TestRequestsNameTheirController must have no denied requests
	ns := newNamespace(t)
	server := startDaemon(t, shortLease...)
	waitHolder(t, "")
	waitLost := expectLoss(t, server, token(t, newNamespace(t), clusterRole(t, everything)))

	grant := revokeLeaseUpdates(t)
	waitLost()
	wantStandbyHealth(t, server)

	grant()
	foos.Create(t, ns, "granted", 1)
	foos.waitCondition(t, ns, "granted", "Reconciling", "Progressing")
}

// wantStandbyHealth checks that the probes of a daemon that has lost its term pass for
// longer than client-go's watchdog tolerates: 20 s after the Lease has expired.
func wantStandbyHealth(t *testing.T, server *apptesting.Server) {
	t.Helper()
	const tolerance = 20 * time.Second
	for began := time.Now(); time.Since(began) < leaseDuration+tolerance+5*time.Second; time.Sleep(time.Second) {
		for _, path := range []string{"/livez", "/readyz"} {
			if code, body, err := server.Get(t.Context(), path, ""); err != nil || code != http.StatusOK {
				t.Fatalf("%s of a replica that lost its term answers %d %s %v after %v", path, code, body, err, time.Since(began).Round(time.Second))
			}
		}
	}
}

// revokeLeaseUpdates revokes the daemon's permission to update the Lease until grant is
// called.
func revokeLeaseUpdates(t *testing.T) (grant func()) {
	t.Helper()
	const name = namespace + "-leader-election"
	roles := shared.Kube().RbacV1().Roles(namespace)
	role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := role.DeepCopy()
	for i := range role.Rules {
		role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return verb == "update" })
	}
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant = func() {
		whole.ResourceVersion = "" // the current one
		if _, err := roles.Update(context.WithoutCancel(t.Context()), whole, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(grant)
	return grant
}
