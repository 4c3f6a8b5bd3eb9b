// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// A Lease that a dead holder holds for 27 hours does not stop the controllers.
func TestLeaseWithAbsurdDurationIsTaken(t *testing.T) {
	waitLeader := func(t *testing.T) {
		t.Helper()
		clustertest.WaitUntil(t, "the daemon leads", func(context.Context) error {
			if holder := ptr.Deref(framework.CurrentLease(t).Spec.HolderIdentity, ""); holder == "" || holder == "dead" {
				return fmt.Errorf("the Lease is held by %q", holder)
			}
			return nil
		})
	}
	for _, deleted := range []bool{true, false} {
		t.Run(fmt.Sprintf("deleted=%t", deleted), func(t *testing.T) {
			if !deleted {
				clustertest.Long(t) // takes a minute
			}
			server := framework.StartDaemon(t, framework.ShortLease...)
			admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
			waitLeader(t)
			patchLease(t, `{"spec":{"holderIdentity":"dead","leaseDurationSeconds":100000}}`)
			clustertest.WaitUntil(t, "the daemon reports how long it waits, and for which holder", func(context.Context) error {
				body := server.GetPage("/readyz?verbose", admin, http.StatusOK)
				if !regexp.MustCompile(`\nleader: dead leads since \S+; this process takes the Lease in \S+ unless `).MatchString(body) {
					return errors.New(body)
				}
				return nil
			})
			if got := server.Value(admin, "sample_controller_manager_leadership_lease_expiration_timestamp_seconds"); got == 0 {
				t.Error("the metric has no time at which the daemon takes the Lease")
			}
			if deleted {
				if err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Delete(t.Context(), framework.DaemonName,
					metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			waitLeader(t)
		})
	}
}

// The metrics that count the lost and the released terms.
const (
	lostTerms     = `sample_controller_manager_leadership_terms_total{end="lost"}`
	releasedTerms = `sample_controller_manager_leadership_terms_total{end="released"}`
)

// expectLoss returns a function that waits until the daemon has lost another term.
func expectLoss(t *testing.T, server *framework.Replica, token string) (wait func()) {
	t.Helper()
	want := server.Value(token, lostTerms) + 1
	return func() {
		t.Helper()
		clustertest.WaitUntil(t, "the term is lost", func(context.Context) error {
			if got := server.Value(token, lostTerms); got < want {
				return fmt.Errorf("%v terms were lost, want %v", got, want)
			}
			return nil
		})
	}
}

// patchLease changes the daemon's Lease.
func patchLease(t *testing.T, patch string) {
	t.Helper()
	if _, err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Patch(t.Context(), framework.DaemonName,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
