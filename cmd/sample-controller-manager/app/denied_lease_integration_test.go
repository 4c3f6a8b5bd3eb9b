// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestReplicaDeniedLeaseUpdatesIsHealthy revokes the leader's right to update the Lease. The
// probes must pass for longer than client-go's watchdog tolerates: 20 s after the Lease has
// expired.
func TestReplicaDeniedLeaseUpdatesIsHealthy(t *testing.T) {
	clustertest.Long(t)
	ownCluster(t) // TestRequestsNameWhomTheyServe allows no denied request in the audit log
	const duration, tolerance = 6 * time.Second, 20 * time.Second
	ns := newNamespace(t)
	server := startDaemon(t, "--leader-elect-lease-duration="+duration.String())
	waitHolder(t, "")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	terms := metric(t, server, admin, lostTerms)

	grant := revokeLeaseUpdates(t)
	clustertest.WaitUntil(t, "the term is lost", func(context.Context) error {
		if got := metric(t, server, admin, lostTerms); got != terms+1 {
			return fmt.Errorf("%v terms were lost, want %v", got, terms+1)
		}
		return nil
	})
	for began := time.Now(); time.Since(began) < duration+tolerance+5*time.Second; time.Sleep(time.Second) {
		for _, path := range []string{"/livez", "/readyz"} {
			if code, body, err := server.Get(t.Context(), path, ""); err != nil || code != http.StatusOK {
				t.Fatalf("%s of a replica that cannot update the Lease answers %d %s %v after %v", path, code, body, err, time.Since(began))
			}
		}
	}

	grant()
	foos.Create(t, ns, "granted", 1)
	foos.waitCondition(t, ns, "granted", "Reconciling", "Progressing")
}

// revokeLeaseUpdates revokes the daemon's right to update the Lease until grant is called.
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
		whole.ResourceVersion = "" // whatever it is by now
		if _, err := roles.Update(context.WithoutCancel(t.Context()), whole, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(grant)
	return grant
}
