// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

// waitDemoted waits until a replica reports that it does not lead.
func (f *fleet) waitDemoted(m *member) {
	f.t.Helper()
	clustertest.WaitUntil(f.t, "the replica no longer leads", func(ctx context.Context) error {
		_, body, err := m.GetAs(ctx, m.Admin(), "/readyz?verbose")
		if err == nil && (!strings.Contains(body, "leader: ") || strings.Contains(body, "leader: this process")) {
			err = errors.New(body)
		}
		return err
	})
}

// faults happen to leaders and their Lease, in this order, while Foos change. After each of
// them a replica must lead, and no replica may have written without leading.
var faults = []struct {
	name   string
	short  bool // also in short mode
	happen func(f *fleet, leader *member)
}{
	{"a suspended leader", true, func(f *fleet, leader *member) {
		leader.freeze()
		f.waitLeader(leader)
		leader.thaw()
	}},
	// Requests in transit when the network fails are lost here, because their sending time is
	// unknown. TestLateWritesAreUndone covers requests that arrive later.
	{"a partition that heals just after expiry", true, func(f *fleet, leader *member) {
		leader.partition()
		f.waitLeader(leader)
		leader.link.Cut()
		leader.heal()
	}},
	{"responses that do not arrive", false, func(f *fleet, leader *member) {
		leader.link.Hold(clustertest.Answers)
		f.waitLeader(leader)
		leader.heal()
	}},
	{"a blackhole in which connections time out", false, func(f *fleet, leader *member) {
		leader.partition()
		f.waitLeader(leader)
		f.waitServed()
		clustertest.WaitUntil(f.t, "the replica loses its connection", func(context.Context) error {
			if !strings.Contains(leader.Log.String(), "client connection lost") {
				return errors.New("not yet")
			}
			return nil
		})
		leader.link.Cut()
		leader.heal()
		leader.Ready()
	}},
	{"kill -9", true, func(f *fleet, leader *member) {
		leader.Kill()
		f.waitLeader(leader)
		leader.start()
		leader.Ready()
	}},
	{"SIGTERM during syncs", false, func(f *fleet, leader *member) {
		leader.Stop()
		f.waitLeader(leader)
		leader.start()
		leader.Ready()
	}},
	{"the Lease deleted", false, func(f *fleet, _ *member) { framework.FreeLease(f.t) }},
	{"the Lease given to another holder", true, func(f *fleet, leader *member) {
		f.patchLease(`{"spec":{"holderIdentity":"usurper"}}`)
		f.waitDemoted(leader)
	}},
	{"the Lease emptied", false, func(f *fleet, _ *member) { f.patchLease(`{"spec":{"holderIdentity":""}}`) }},
	{"permission to the Lease revoked", false, revoked},
	{"a restart of the API server", false, func(f *fleet, _ *member) {
		if err := framework.Cluster().RestartAPIServer(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}},
	{"a second process with the same configuration", false, func(f *fleet, leader *member) {
		second := framework.StartReplicaWith(f.t, leader.kubeconfig, shortFaults...).Ready()
		f.waitServed()
		if strings.Contains(second.Log.String(), `"Leading"`) {
			f.t.Error("a process with the leader's configuration leads beside it")
		}
		second.Stop()
	}},
}

// revoked revokes the daemon's right to its Lease until no replica leads.
func revoked(f *fleet, leader *member) {
	const name = framework.DaemonName + "-leader-election"
	bindings := framework.Kube().RbacV1().RoleBindings(framework.DaemonName)
	binding, err := bindings.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := bindings.Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
	binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels, Annotations: binding.Annotations}
	restore := func(ctx context.Context) {
		if _, err := bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			f.t.Error(err)
		}
	}
	f.t.Cleanup(func() { restore(context.WithoutCancel(f.t.Context())) })
	f.waitDemoted(leader)
	restore(f.t.Context())
}

// patchLease changes the Lease as an administrator.
func (f *fleet) patchLease(patch string) {
	f.t.Helper()
	if _, err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Patch(f.t.Context(), framework.DaemonName,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// TestLeadersUnderFaults exposes three replicas to one fault after another while 200 Foos
// change. No write is sent outside a term, no Lease is overwritten, no process exits unless
// told to, and in the end all Foos converge.
func TestLeadersUnderFaults(t *testing.T) {
	// Denials concern the Lease, and all requests while an API server starts and does not know
	// the roles yet.
	framework.ExpectDenials(t, cluster.Unauthorized)
	ns := framework.NewNamespace(t)
	f := startFleet(t, 3, false, shortFaults...)
	flapping := framework.StartFlapping(t, ns, framework.Count(200, 30))
	for _, fault := range faults {
		if testing.Short() && !fault.short {
			continue
		}
		began := time.Now()
		fault.happen(f, f.waitLeader())
		f.waitServed()
		t.Logf("%-50s %5.1fs", fault.name, time.Since(began).Seconds())
	}
	for _, m := range f.members {
		select {
		case <-m.Done:
			t.Errorf("a replica has ended: %v", m.Cmd.ProcessState)
		default:
		}
		m.WantLive(t.Context())
	}
	flapping.End(t)
	t.Logf("found:\n%s", f.check())
	for _, m := range f.members {
		m.Stop()
	}
	f.wantNoViolations()
}

// nextVersion is the version of a build that represents the next release.
const nextVersion = "v99.0.0"

// TestRollingUpgrade replaces three replicas one by one while Foos change, as a rolling update
// of their Deployment does. In long mode it upgrades to the next build and back. Each handover
// begins with a released Lease, and nothing is written for Foos that do not change.
func TestRollingUpgrade(t *testing.T) {
	builds := []string{framework.Binary()}
	if !testing.Short() {
		next := filepath.Join(framework.Cluster().Dir, "next", framework.DaemonName)
		if err := framework.Build(t.Context(), next, "BUILD_VERSION="+nextVersion); err != nil {
			t.Fatal(err)
		}
		builds = []string{next, framework.Binary()}
	}
	const count = 5
	ns, untouched := framework.NewNamespace(t), framework.NewNamespace(t)
	f := startFleet(t, 3, false)
	for i := range count {
		framework.Foos.Create(t, untouched, fmt.Sprintf("foo-%d", i), 2)
	}
	for i := range count {
		framework.Foos.WaitReady(t, untouched, fmt.Sprintf("foo-%d", i), 2)
		framework.Foos.WaitPodsReported(t, untouched, fmt.Sprintf("foo-%d", i), 2)
	}
	var before map[string]int
	clustertest.WaitUntil(t, "the statuses of the untouched Foos are complete", func(context.Context) error {
		if before = framework.Requests(t, untouched); before["create deployments"] != count || before["create events"] != count {
			return fmt.Errorf("requests for %d Foos are %v", count, before)
		}
		return nil
	})
	flapping := framework.StartFlapping(t, ns, framework.Count(50, 20))
	for _, f.build = range builds {
		for _, old := range slices.Clone(f.members[len(f.members)-3:]) {
			f.add().Ready()
			old.Stop()
			f.waitServed()
		}
	}
	flapping.End(t)
	r := f.wantNoViolations()
	t.Logf("found:\n%s", r)
	// Without a release, the cluster would have no leader for seconds, until the Lease
	// expires. With a release, the gap is only an instant.
	if slices.ContainsFunc(r.Epochs, func(e leaders.Epoch) bool {
		return e.End != leaders.Released &&
			e.End != leaders.Lasts
	}) || r.Handovers == 0 {
		t.Errorf("%d handovers in terms %+v, want each to begin with a release of the Lease", r.Handovers, r.Epochs)
	}
	if diff := cmp.Diff(before, framework.Requests(t, untouched)); diff != "" {
		t.Errorf("requests for untouched Foos (-before +after):\n%s", diff)
	}
	if len(builds) > 1 && !slices.ContainsFunc(framework.DaemonEvents(t, ns),
		func(event auditv1.Event) bool { return strings.Contains(event.UserAgent, nextVersion) }) {
		t.Error("the next build has written nothing")
	}
	f.wantNoRelist()
}

// wantNoRelist checks that no replica listed objects after it began to lead. It continues with
// the cache that it filled as a standby. Watches may be resumed, because the API server ends
// them after some minutes, or when it is busy.
func (f *fleet) wantNoRelist() {
	f.t.Helper()
	firstLed := map[string]time.Time{}
	for _, e := range f.check().Epochs {
		if _, ok := firstLed[e.Credential]; !ok {
			firstLed[e.Credential] = e.From
		}
	}
	lists := 0
	for _, event := range framework.InformerLists(f.t, f.began) {
		led, ok := firstLed[leaders.Credential(event)]
		if !ok {
			continue
		}
		lists++
		if event.RequestReceivedTimestamp.After(led) {
			f.t.Errorf("%s %s after its replica began to lead: %s", cluster.Call(event),
				event.RequestReceivedTimestamp.Sub(led), event.RequestURI)
		}
	}
	if lists == 0 {
		f.t.Error("no list of informers in the audit log: this test would not see a relist")
	}
}
