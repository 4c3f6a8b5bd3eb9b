// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

// attempts bounds how often a fault is tried until a stock leader does what it is known
// to do. Whether it does depends on where in its loop the fault meets it.
const attempts = 4

// TestStockLeaders finds in client-go's leaders what must not be found in ours, under
// the same faults. A checker that finds nothing there proves nothing here.
func TestStockLeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		releaseOnCancel bool
		fault           func(f *fleet, leader *member)
		want            leaders.Kind
	}{
		"a zombie writes on":                                   {false, zombie, leaders.WriteOutsideTerm},
		"a zombie that would release writes on":                {true, zombie, leaders.WriteOutsideTerm},
		"after a partition one empties the next one's Lease":   {true, healed, leaders.Overwrite},
		"one that is asked to end writes on after it released": {true, terminated, leaders.WriteAfterRelease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startStockFleet(t, 3, tc.releaseOnCancel, false)
			for range attempts {
				// Else it may be one that was started just now, to whom the Lease of the one
				// before it was ascribed, and which is not even listening to signals.
				f.waitWrites(1)
				leader := f.waitLeader()
				tc.fault(f, leader)
				leader.waitEnd()
				if r := f.check(); r.Count(tc.want) > 0 {
					t.Logf("found:\n%s", r)
					return
				}
				leader.start()
			}
			t.Errorf("no %s found in %d attempts:\n%s", tc.want, attempts, f.check())
		})
	}
}

// zombie freezes a leader until another leads.
func zombie(f *fleet, leader *member) {
	leader.freeze()
	f.waitLeader(leader)
	leader.thaw()
}

// healed keeps a leader from the API server until another leads.
func healed(f *fleet, leader *member) {
	leader.partition()
	f.waitLeader(leader)
	leader.heal()
}

// terminated asks a leader to end.
func terminated(_ *fleet, leader *member) { leader.stop() }

// TestStockLeadersThatDoRight finds nothing where there is nothing to be found: these
// leaders are gone when the next one leads. What they had sent before, and what comes
// later, is no fault of theirs.
func TestStockLeadersThatDoRight(t *testing.T) {
	for name, tc := range map[string]struct {
		fault func(f *fleet, leader *member) (held []types.UID)
	}{
		"killed, with a write on its way": {killedWhileHeld},
		// Whether the API server still makes the writes of one that is gone is chance.
		"partitioned, and released by nobody": {func(f *fleet, leader *member) []types.UID {
			healed(f, leader)
			leader.waitEnd()
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startStockFleet(t, 2, false, true)
			leader := f.waitLeader()
			held := tc.fault(f, leader)
			f.waitWrites(10)
			f.waitLeader(leader).kill()
			r := f.check()
			t.Logf("found:\n%s", r)
			if len(r.Violations) > 0 || len(r.Handovers) != 1 {
				t.Error("want no violation, and one handover")
			}
			for _, id := range held {
				if !slices.ContainsFunc(r.Held, func(event auditv1.Event) bool { return event.AuditID == id }) {
					t.Errorf("the write %s was held and is not among those that were", id)
				}
			}
		})
	}
}

// killedWhileHeld holds a write of a leader, kills it, and lets the write go when
// another leads.
func killedWhileHeld(f *fleet, leader *member) (held []types.UID) {
	hold := leader.proxy.Hold(func(r *http.Request, _ []byte) bool { return r.Method == http.MethodPatch })
	waitClosed(f.t, "the leader writes", hold.Arrived())
	leader.kill()
	f.waitLeader(leader)
	if code, err := hold.Release(f.t.Context()); code != http.StatusOK || err != nil {
		f.t.Errorf("the write that was held: %d, %v", code, err)
	}
	return []types.UID{hold.AuditID()}
}

// startStockFleet starts stock leaders in a namespace of their own.
func startStockFleet(t *testing.T, replicas int, releaseOnCancel, proxied bool) *fleet {
	t.Helper()
	ns := newNamespace(t)
	name := metav1.ObjectMeta{Namespace: ns, Name: "leader"}
	_, err := kube.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, configMap := range []string{"heedless", "heedful"} {
		if _, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	key := types.NamespacedName{Namespace: ns, Name: name.Name}
	return startFleet(t, fleetOptions{
		replicas: replicas, lease: key, serviceAccount: key, proxied: proxied,
		start: func(t *testing.T, kubeconfig string) *program {
			return startStockLeader(t, kubeconfig, ns, releaseOnCancel)
		},
	})
}
