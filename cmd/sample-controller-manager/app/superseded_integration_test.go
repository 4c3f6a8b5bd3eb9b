// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestSupersededLeaderIsHealthy leaves the leader's Lease updates unanswered until another
// process holds the Lease. By then the leader has lost its term and campaigns again. Its
// first read of the Lease still showed itself as the holder, so client-go's elector
// believes that it leads while it waits for the other process.
func TestSupersededLeaderIsHealthy(t *testing.T) {
	clustertest.Long(t)
	updates := startSilencer(t, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/leases/"+namespace)
	})
	ns := newNamespace(t)
	server := startDaemon(t, append(shortLease, "--kubeconfig="+updates.Kubeconfig(t, namespace, namespace))...)
	first := waitHolder(t, "")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	waitLost := expectLoss(t, server, admin)

	updates.silent.Store(true)
	waitLost()
	before := updates.unanswered.Load()
	clustertest.WaitUntil(t, "the next campaign updates the Lease", func(context.Context) error {
		if got := updates.unanswered.Load(); got == before {
			return fmt.Errorf("no update after the %d of the lost term", got)
		}
		return nil
	})
	stop := startAnotherDaemon(t)
	second := waitHolder(t, first)
	updates.silent.Store(false)
	term := func() []any { spec := lease(t).Spec; return []any{spec.HolderIdentity, spec.AcquireTime} }
	taken := term()
	wantHealth(t, server, "/livez", "/readyz")
	if body := get(t, server, "/readyz?verbose", admin, http.StatusOK); !strings.Contains(body, "\nleader: "+second+" leads since ") {
		t.Errorf("/readyz?verbose does not say that %s leads:\n%s", second, body)
	}
	if diff := cmp.Diff(taken, term()); diff != "" {
		t.Errorf("the term of the other process has ended (-want +got):\n%s", diff)
	}

	stop()
	foos.Create(t, ns, "after", 1)
	foos.waitCondition(t, ns, "after", "Reconciling", "Progressing")
	if got := waitHolder(t, ""); got != first {
		t.Errorf("the Lease is held by %q, want %q", got, first)
	}
}
