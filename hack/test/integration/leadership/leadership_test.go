// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// A Lease that a dead holder holds for 27 hours does not stop the controllers.
func TestLeaseWithAbsurdDurationIsTaken(t *testing.T) {
	clustertest.Long(t) // takes a minute
	server := framework.StartDaemon(t, framework.ShortLease...)
	framework.WaitLeader(t, "")
	patchLease(t, `{"spec":{"holderIdentity":"dead","leaseDurationSeconds":100000}}`)
	server.GetPage("/readyz?verbose", server.Admin(), http.StatusOK, "\nleader: dead leads since ", "; this process takes the Lease in ")
	if got := server.Value("sample_controller_manager_leadership_lease_expiration_timestamp_seconds"); got == 0 {
		t.Error("the metric has no time at which the daemon takes the Lease")
	}
	framework.WaitLeader(t, "dead")
}

// The metrics that count the lost and the released terms.
const (
	lostTerms     = `sample_controller_manager_leadership_terms_total{end="lost"}`
	releasedTerms = `sample_controller_manager_leadership_terms_total{end="released"}`
)

// expectLoss returns a function that waits until the daemon has lost another term.
func expectLoss(t *testing.T, server *framework.Replica) (wait func()) {
	t.Helper()
	want := server.Value(lostTerms) + 1
	return func() {
		t.Helper()
		clustertest.WaitUntil(t, "the term is lost", func(context.Context) error {
			if got := server.Value(lostTerms); got < want {
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
