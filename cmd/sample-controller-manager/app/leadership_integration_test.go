// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// leaseDuration is the duration of shortLease.
const leaseDuration = 6 * time.Second

// shortLease are the flags of a daemon that is to lose its Lease.
var shortLease = []string{"--leader-elect-lease-duration=" + leaseDuration.String(), "--leader-elect-renew-deadline=4s", "--write-timeout=3s"}

func TestLeaseIsReleasedAfterLastWrite(t *testing.T) {
	ns := newNamespace(t)
	server := startDaemon(t)
	foos.Create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder == "" {
		t.Error("the Lease has no holder while the daemon leads")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("the Lease is held by %q after the daemon has stopped", holder)
	}
	events := shared.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && isWrite(event)
	})
	for i := len(events) - 1; ; i-- {
		call := cluster.Call(events[i])
		if call == "update leases" {
			break
		}
		if isWork(events[i]) {
			t.Errorf("%s was written after the Lease was released", call)
		}
	}
}

// A daemon that loses its Lease writes nothing until it leads again. It then continues with
// the caches that it has kept.
func TestLostLeaseCostsNoRestartAndNoRelist(t *testing.T) {
	ns := newNamespace(t)
	server := startDaemon(t, shortLease...)
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	waitLost := expectLoss(t, server, admin)

	t.Cleanup(func() { // so that the next test does not wait for the usurper
		err := shared.Kube().CoordinationV1().Leases(namespace).Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	patchLease(t, `{"spec":{"holderIdentity":"usurper","leaseDurationSeconds":300}}`)
	lost := metav1.NowMicro()
	waitLost()
	if body := get(t, server, "/readyz?verbose", admin, http.StatusOK); !strings.Contains(body, "\nleader: usurper leads since ") {
		t.Errorf("/readyz?verbose does not say that the usurper leads:\n%s", body)
	}
	get(t, server, "/livez", "", http.StatusOK)
	foos.Create(t, ns, "meanwhile", 1)
	kept := lease(t)
	if holder := ptr.Deref(kept.Spec.HolderIdentity, ""); holder != "usurper" {
		t.Errorf("the Lease is held by %q: a foreign Lease was overwritten", holder)
	}

	patchLease(t, `{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`) // as a holder releases it
	foos.waitCondition(t, ns, "meanwhile", "Reconciling", "Progressing")
	acquired := lease(t).Spec.AcquireTime
	clustertest.WaitUntil(t, "/statusz shows that this process leads", func(context.Context) error { // the page may be a second old
		if body := get(t, server, "/statusz", admin, http.StatusOK); !strings.Contains(body, "\nleader: this process, ") {
			return errors.New(body)
		}
		return nil
	})
	events := shared.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && !event.RequestReceivedTimestamp.Before(&lost)
	})
	for _, event := range events {
		switch call := cluster.Call(event); {
		case cluster.ByUserAgent("informers")(event):
			t.Errorf("%s after the first term: its caches were not kept", call)
		case isWork(event) && event.RequestReceivedTimestamp.Before(acquired):
			t.Errorf("%s between two terms", call)
		}
	}
}

// A Lease that a dead holder holds for 27 hours does not stop the controllers.
func TestLeaseWithAbsurdDurationIsTaken(t *testing.T) {
	waitLeader := func(t *testing.T) {
		t.Helper()
		clustertest.WaitUntil(t, "the daemon leads", func(context.Context) error {
			if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder == "" || holder == "dead" {
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
			server := startDaemon(t, shortLease...)
			admin := token(t, newNamespace(t), clusterRole(t, everything))
			waitLeader(t)
			patchLease(t, `{"spec":{"holderIdentity":"dead","leaseDurationSeconds":100000}}`)
			clustertest.WaitUntil(t, "the daemon reports how long it waits, and for which holder", func(context.Context) error {
				body := get(t, server, "/readyz?verbose", admin, http.StatusOK)
				if !regexp.MustCompile(`\nleader: dead leads since \S+; this process takes the Lease in \S+ unless `).MatchString(body) {
					return errors.New(body)
				}
				return nil
			})
			if got := metric(t, server, admin, "sample_controller_manager_leadership_lease_expiration_timestamp_seconds"); got == 0 {
				t.Error("the metric has no time at which the daemon takes the Lease")
			}
			if deleted {
				if err := shared.Kube().CoordinationV1().Leases(namespace).Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
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
func expectLoss(t *testing.T, server *apptesting.Server, token string) (wait func()) {
	t.Helper()
	want := metric(t, server, token, lostTerms) + 1
	return func() {
		t.Helper()
		clustertest.WaitUntil(t, "the term is lost", func(context.Context) error {
			if got := metric(t, server, token, lostTerms); got < want {
				return fmt.Errorf("%v terms were lost, want %v", got, want)
			}
			return nil
		})
	}
}

// metric returns the value of a series.
func metric(t *testing.T, server *apptesting.Server, token, series string) float64 {
	t.Helper()
	body := get(t, server, "/metrics", token, http.StatusOK)
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("no series %s", series)
	return 0
}

// patchLease changes the daemon's Lease.
func patchLease(t *testing.T, patch string) {
	t.Helper()
	if _, err := shared.Kube().CoordinationV1().Leases(namespace).Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestNoLeaseWithoutElection(t *testing.T) {
	before := lease(t)
	ns := newNamespace(t)
	startDaemon(t, "--leader-elect=false")
	foos.Create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	if after := lease(t); after.ResourceVersion != before.ResourceVersion {
		t.Error("the Lease was written")
	}
}

func TestRequestsNameTheirController(t *testing.T) {
	startDaemon(t)
	for _, k := range sideBySide(t) {
		k.Create(t, k.ns, "a", 1)
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
		k.waitPods(t, k.ns, "a", "none")
	}
	events := shared.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.User.Username, "system:serviceaccount:"+namespace+":")
	})
	workloadControllers := []string{foos.Controller, icecreams.Controller}
	want := map[string][]string{
		"create deployments": workloadControllers, "patch deployments": workloadControllers,
		foos.patchStatus(): {foos.Controller, aggregator}, icecreams.patchStatus(): {icecreams.Controller, aggregator},
		"watch deployments": {"informers"}, "watch foos": {"informers"}, "watch icecreams": {"informers"},
		"watch replicasets": {"informers"}, "watch pods": {"informers"},
		"get leases": {"leader-election"}, "watch leases": {"leader-election"}, "create leases": {"leader-election"}, "update leases": {"leader-election"},
		"create events": {"events"}, "patch events": {"events"},
	}
	seen := map[string]bool{}
	for _, event := range events {
		call := cluster.Call(event)
		if names, ok := want[call]; ok {
			name := event.UserAgent[strings.LastIndex(event.UserAgent, "/")+1:]
			seen[call+" by "+name] = true
			if !strings.HasPrefix(event.UserAgent, "sample-controller-manager/") || !slices.Contains(names, name) {
				t.Errorf("%s has the user agent %q, want sample-controller-manager/.../ and one of %q", call, event.UserAgent, names)
			}
		}
		if cluster.Unauthorized(event) && !duringRestart(event) {
			t.Errorf("%s was denied: the manifests lack a rule: %s", call, event.ResponseStatus.Message)
		}
	}
	for _, call := range []string{
		"create deployments by foo-controller", "create deployments by icecream-controller",
		"patch foos/status by foo-controller", "patch icecreams/status by icecream-controller",
		"patch foos/status by " + aggregator, "patch icecreams/status by " + aggregator,
		"watch deployments by informers", "watch foos by informers", "watch leases by leader-election", "update leases by leader-election",
	} {
		if !seen[call] {
			t.Errorf("no request %q in the audit log: this test would not see its user agent", call)
		}
	}
}

func isWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// isWork matches writes that only a leader may make.
func isWork(event auditv1.Event) bool {
	call := cluster.Call(event)
	return isWrite(event) && !strings.HasSuffix(call, " events") && !strings.Contains(call, "reviews") && !strings.HasSuffix(call, " leases")
}

// lease returns the daemon's Lease, empty if there is none.
func lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := shared.Kube().CoordinationV1().Leases(namespace).Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil {
		return &coordinationv1.Lease{}
	}
	return lease
}
