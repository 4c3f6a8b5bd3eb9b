// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"net/http"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// A Lease that a dead holder holds for 27 hours does not stop the controllers.
func TestLeaseWithAbsurdDurationIsTaken(t *testing.T) {
	clustertest.Long(t) // takes a minute
	e := inParallel(t)
	server := framework.StartDaemon(t, e.direct(framework.ShortLease...)...)
	e.waitLeader("")
	e.patchLease(`{"spec":{"holderIdentity":"dead","leaseDurationSeconds":100000}}`)
	server.GetPage("/readyz?verbose", server.Admin(), http.StatusOK, "\nleader: dead leads since ", "; this process takes the Lease in ")
	if got := server.Value("sample_controller_manager_leadership_lease_expiration_timestamp_seconds"); got == 0 {
		t.Error("the metric has no time at which the daemon takes the Lease")
	}
	e.waitLeader("dead")
}
