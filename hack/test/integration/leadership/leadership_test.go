// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestLeaseIsReleasedAfterLastWrite(t *testing.T) {
	ns := framework.NewNamespace(t)
	server := framework.StartDaemon(t)
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
	if holder := ptr.Deref(framework.CurrentLease(t).Spec.HolderIdentity, ""); holder == "" {
		t.Error("the Lease has no holder while the daemon leads")
	}
	server.Stop()
	if holder := ptr.Deref(framework.CurrentLease(t).Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("the Lease is held by %q after the daemon has stopped", holder)
	}
	events := framework.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && framework.IsWrite(event)
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
	ns := framework.NewNamespace(t)
	server := framework.StartDaemon(t, framework.ShortLease...)
	framework.Foos.Create(t, ns, "before", 1)
	framework.Foos.WaitCondition(t, ns, "before", "Reconciling", "Progressing")
	admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
	waitLost := expectLoss(t, server, admin)

	t.Cleanup(func() { // so that the next test does not wait for the usurper
		err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Delete(context.WithoutCancel(t.Context()),
			framework.DaemonName, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	patchLease(t, `{"spec":{"holderIdentity":"usurper","leaseDurationSeconds":300}}`)
	lost := metav1.NowMicro()
	waitLost()
	if body := server.GetPage("/readyz?verbose", admin, http.StatusOK); !strings.Contains(body, "\nleader: usurper leads since ") {
		t.Errorf("/readyz?verbose does not say that the usurper leads:\n%s", body)
	}
	server.GetPage("/livez", "", http.StatusOK)
	framework.Foos.Create(t, ns, "meanwhile", 1)
	kept := framework.CurrentLease(t)
	if holder := ptr.Deref(kept.Spec.HolderIdentity, ""); holder != "usurper" {
		t.Errorf("the Lease is held by %q: a foreign Lease was overwritten", holder)
	}

	patchLease(t, `{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`) // as a holder releases it
	framework.Foos.WaitCondition(t, ns, "meanwhile", "Reconciling", "Progressing")
	acquired := framework.CurrentLease(t).Spec.AcquireTime
	clustertest.WaitUntil(t, "/statusz shows that this process leads", func(context.Context) error { // the page may be a second old
		if body := server.GetPage("/statusz", admin, http.StatusOK); !strings.Contains(body, "\nleader: this process, ") {
			return errors.New(body)
		}
		return nil
	})
	events := framework.Audit(t, func(event auditv1.Event) bool {
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

func TestNoLeaseWithoutElection(t *testing.T) {
	before := framework.CurrentLease(t)
	ns := framework.NewNamespace(t)
	framework.StartDaemon(t, "--leader-elect=false")
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
	if after := framework.CurrentLease(t); after.ResourceVersion != before.ResourceVersion {
		t.Error("the Lease was written")
	}
}

func TestRequestsNameTheirController(t *testing.T) {
	server := framework.StartDaemon(t)
	for _, k := range framework.SideBySide(t) {
		k.Create(t, k.Ns, "a", 1)
		k.WaitCondition(t, k.Ns, "a", "Reconciling", "Progressing")
		k.WaitPods(t, k.Ns, "a", "none")
	}
	server.Stop() // the audit log has watches that have ended
	events := framework.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.User.Username, "system:serviceaccount:"+framework.DaemonName+":")
	})
	workloadControllers := []string{framework.Foos.Controller, framework.Icecreams.Controller}
	want := map[string][]string{
		"create deployments": workloadControllers, "patch deployments": workloadControllers,
		framework.Foos.PatchStatus():      {framework.Foos.Controller, framework.Aggregator},
		framework.Icecreams.PatchStatus(): {framework.Icecreams.Controller, framework.Aggregator},
		"watch deployments":               {"informers"}, "watch foos": {"informers"}, "watch icecreams": {"informers"},
		"watch replicasets": {"informers"}, "watch pods": {"informers"},
		"get leases": {"leader-election"}, "watch leases": {"leader-election"}, "create leases": {"leader-election"}, "update leases": {"leader-election"},
		"create events": {"events", "namespace"}, "patch events": {"events"},
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
		"patch foos/status by " + framework.Aggregator, "patch icecreams/status by " + framework.Aggregator,
		"watch deployments by informers", "watch foos by informers", "watch leases by leader-election", "update leases by leader-election",
	} {
		if !seen[call] {
			t.Errorf("no request %q in the audit log: this test would not see its user agent", call)
		}
	}
}

// isWork matches writes that only a leader may make.
func isWork(event auditv1.Event) bool {
	call := cluster.Call(event)
	return framework.IsWrite(event) && !strings.HasSuffix(call, " events") && !strings.Contains(call, "reviews") &&
		!strings.HasSuffix(call, " leases")
}
