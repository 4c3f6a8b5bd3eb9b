// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
	e := inParallel(t)
	updates := framework.StartSilencer(t, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/leases/"+framework.DaemonName)
	})
	server := framework.StartDaemon(t, e.through(updates.Proxy, framework.ShortLease...)...)
	first := e.waitLeader("")
	lost := server.Value(lostTerms)

	updates.Silent.Store(true)
	clustertest.WaitUntil(t, "the term is lost", func(context.Context) error {
		if got := server.Value(lostTerms); got <= lost {
			return fmt.Errorf("%v terms were lost, as before", got)
		}
		return nil
	})
	before := updates.Unanswered.Load()
	clustertest.WaitUntil(t, "the next campaign updates the Lease", func(context.Context) error {
		if got := updates.Unanswered.Load(); got == before {
			return fmt.Errorf("no update after the %d of the lost term", got)
		}
		return nil
	})
	stop := framework.StartReplica(t, e.direct()...).Stop
	second := e.waitLeader(first)
	updates.Silent.Store(false)
	term := func() []any {
		spec := framework.CurrentLease(t, e.ns).Spec
		return []any{spec.HolderIdentity, spec.AcquireTime}
	}
	taken := term()
	wantHealth(t, server, "/livez", "/readyz")
	server.GetPage("/readyz?verbose", server.Admin(), http.StatusOK, "\nleader: "+second+" leads since ")
	if diff := cmp.Diff(taken, term()); diff != "" {
		t.Errorf("the term of the other process has ended (-want +got):\n%s", diff)
	}

	stop()
	e.serve("after")
	if got := e.waitLeader(""); got != first {
		t.Errorf("the Lease is held by %q, want %q", got, first)
	}
}

// wantHealth checks that the probes of a daemon that has lost its term pass for longer than
// client-go's watchdog tolerates: 20 s after the Lease has expired.
func wantHealth(t *testing.T, server *framework.Replica, probes ...string) {
	t.Helper()
	const tolerance = 20 * time.Second
	for began := time.Now(); time.Since(began) < framework.LeaseDuration+tolerance+5*time.Second; time.Sleep(time.Second) {
		for _, path := range probes {
			if code, body, err := server.GetAs(t.Context(), "", path); err != nil || code != http.StatusOK {
				t.Fatalf("%s of a replica that lost its term answers %d %s %v after %v", path, code, body, err, time.Since(began).Round(time.Second))
			}
		}
	}
}
