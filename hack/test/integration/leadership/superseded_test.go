// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestSupersededLeaderIsHealthy leaves the leader's Lease updates unanswered until another
// process holds the Lease. By then the leader has lost its term and campaigns again. Its
// first read of the Lease still showed itself as the holder, so client-go's elector
// believes that it leads while it waits for the other process.
func TestSupersededLeaderIsHealthy(t *testing.T) {
	clustertest.Long(t)
	updates := framework.StartSilencer(t, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/leases/"+framework.DaemonName)
	})
	ns := framework.NewNamespace(t)
	server := framework.StartDaemon(t, append(framework.ShortLease, "--kubeconfig="+updates.Kubeconfig(t, framework.DaemonName,
		framework.DaemonName))...)
	first := framework.WaitLeader(t, "")
	waitLost := expectLoss(t, server)

	updates.Silent.Store(true)
	waitLost()
	before := updates.Unanswered.Load()
	clustertest.WaitUntil(t, "the next campaign updates the Lease", func(context.Context) error {
		if got := updates.Unanswered.Load(); got == before {
			return fmt.Errorf("no update after the %d of the lost term", got)
		}
		return nil
	})
	stop := framework.StartReplica(t).Stop
	second := framework.WaitLeader(t, first)
	updates.Silent.Store(false)
	term := func() []any {
		spec := framework.CurrentLease(t).Spec
		return []any{spec.HolderIdentity, spec.AcquireTime}
	}
	taken := term()
	wantHealth(t, server, "/livez", "/readyz")
	server.GetPage("/readyz?verbose", server.Admin(), http.StatusOK, "\nleader: "+second+" leads since ")
	if diff := cmp.Diff(taken, term()); diff != "" {
		t.Errorf("the term of the other process has ended (-want +got):\n%s", diff)
	}

	stop()
	framework.Foos.Create(t, ns, "after", 1)
	framework.Foos.WaitCondition(t, ns, "after", "Reconciling", "Progressing")
	if got := framework.WaitLeader(t, ""); got != first {
		t.Errorf("the Lease is held by %q, want %q", got, first)
	}
}
