// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// informers matches the requests of informers.
func informers(r *http.Request) bool { return strings.HasSuffix(r.UserAgent(), "/informers") }

// A leader with blind informers continues to lead while the standby is blind, too, and
// hands over once the standby sees.
func TestBlindLeaderHandsOver(t *testing.T) {
	clustertest.Long(t)
	e := inParallel(t)
	a, b := framework.StartSilencer(t, informers), framework.StartSilencer(t, informers)
	framework.StartDaemon(t, e.through(a.Proxy)...)
	first := e.waitLeader("")
	framework.StartReplica(t, e.through(b.Proxy)...).Ready()
	e.serve("before")

	a.Cut(true)
	b.Cut(true)
	e.waitDeclinedOffer(first, "cache of foos.samplecontroller.k8s.io does not follow the API server")
	framework.Foos.Create(t, e.ns, "unseen", 1)
	b.Cut(false)
	framework.Foos.WaitCondition(t, e.ns, "unseen", "Reconciling", "Progressing")
	e.wantHandedOver(first)
}

// TestStalledLeaderHandsOver leaves the writes of the leader's controllers unanswered. The
// leader sees events and renews its Lease. It continues to lead while the standby is blind,
// and becomes a standby itself once the other sees.
func TestStalledLeaderHandsOver(t *testing.T) {
	clustertest.Long(t)
	e := inParallel(t)
	a, b := framework.StartSilencer(t, isControllersWrite), framework.StartSilencer(t, informers)
	// The drain abandons the writes.
	server := framework.StartDaemon(t, e.through(a.Proxy, "--write-timeout=3s", "--controller-shutdown-timeout=1m")...)
	first := e.waitLeader("")
	released, lost := server.Value(releasedTerms), server.Value(lostTerms)
	stop := framework.StartReplica(t, e.through(b.Proxy)...).Ready().Stop
	e.serve("before")

	a.Silent.Store(true)
	b.Cut(true)
	const count = 5 // this many failing objects make a controller unhealthy
	for i := range count {
		framework.Foos.Create(t, e.ns, fmt.Sprintf("stalled-%d", i), 1)
	}
	e.waitDeclinedOffer(first) // on a busy machine the reason may be a delayed watch
	b.Cut(false)
	for i := range count {
		framework.Foos.WaitCondition(t, e.ns, fmt.Sprintf("stalled-%d", i), "Reconciling", "Progressing")
	}
	second := e.wantHandedOver(first)

	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		server.GetPage(path+"?verbose", server.Admin(), http.StatusOK, "\nleader: "+second+" leads since ")
	}
	if got := server.Value(releasedTerms); got != released+1 {
		t.Errorf("%v terms were released, want %v", got, released+1)
	}
	if got := server.Value(lostTerms); got != lost {
		t.Errorf("%v terms were lost, want %v", got, lost)
	}
	a.Silent.Store(false)
	stop()
	e.serve("after")
	if got := e.waitLeader(""); got != first {
		t.Errorf("the Lease is held by %q, want %q", got, first)
	}
}

// isControllersWrite matches the writes of all controllers, but not those of the election.
func isControllersWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.HasSuffix(r.UserAgent(), "-controller")
}

// The metrics that count the lost and the released terms.
const (
	lostTerms     = `sample_controller_manager_leadership_terms_total{end="lost"}`
	releasedTerms = `sample_controller_manager_leadership_terms_total{end="released"}`
)

// Annotations by which a leader offers its Lease and a standby accepts it.
const (
	offered   = "leadership.samplecontroller.io/offered"
	preferred = "leadership.samplecontroller.io/preferred-holder"
)

// waitDeclinedOffer waits until the leader has offered the Lease for 20 seconds, in which
// each standby sees the offer several times. It fails if another process accepts or leads.
// The reason must contain the given words.
func (e election) waitDeclinedOffer(leader string, words ...string) {
	e.t.Helper()
	var since time.Time
	for began := time.Now(); since.IsZero() || time.Since(since) < 20*time.Second; time.Sleep(time.Second) {
		got := framework.CurrentLease(e.t, e.ns)
		holder, reason := ptr.Deref(got.Spec.HolderIdentity, ""), got.Annotations[offered]
		switch {
		case holder != leader || got.Annotations[preferred] != "":
			e.t.Fatalf("after %v the Lease is held by %q with annotations %v, want it held by %q and accepted by nobody",
				time.Since(began).Round(time.Second), holder, got.Annotations, leader)
		case since.IsZero() && reason != "":
			since = time.Now()
			for _, word := range words {
				if !strings.Contains(reason, word) {
					e.t.Errorf("reason of the offer: %q, want %q", reason, words)
				}
			}
		case since.IsZero() && time.Since(began) > 10*time.Minute:
			e.t.Fatalf("an unfit leader does not offer its Lease: %v", got.Annotations)
		}
	}
}

// wantHandedOver checks that another process leads and does not offer the Lease. It returns
// that process.
func (e election) wantHandedOver(from string) (to string) {
	e.t.Helper()
	got := framework.CurrentLease(e.t, e.ns)
	to = ptr.Deref(got.Spec.HolderIdentity, "")
	if to == from || to == "" {
		e.t.Errorf("the Lease is held by %q, want the standby", to)
	}
	if len(got.Annotations) > 0 {
		e.t.Errorf("annotations of the Lease of a fit leader: %v, want none", got.Annotations)
	}
	return to
}
