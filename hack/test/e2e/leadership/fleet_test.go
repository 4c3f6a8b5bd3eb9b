// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

// daemon is the name of the daemon's Lease, and of its ServiceAccount.
var daemon = types.NamespacedName{Namespace: framework.DaemonName, Name: framework.DaemonName}

// shortFaults are the flags of replicas that are to lose their Lease often.
var shortFaults = slices.Concat(framework.ShortLease, []string{"--leader-elect-retry-period=1s", "--write-timeout=1s"})

// fleet is a set of replicas that elect a leader.
type fleet struct {
	t     *testing.T
	began time.Time
	// proxied puts a proxy before each replica's link. It can hold single writes and records
	// when each was sent. The replica is then connected to the proxy, and does not see failed
	// connections over the link.
	proxied bool
	build   string // of new replicas
	flags   []string
	members []*member
}

// member is a replica with its own credentials and network, which it keeps across restarts.
type member struct {
	*framework.Replica
	fleet      *fleet
	link       *clustertest.Link
	proxy      *clustertest.HoldingProxy // nil unless the fleet is proxied
	kubeconfig string
	credential string // its ID in the audit log
}

// startFleet starts replicas and waits until they are ready. Checks ignore earlier writes of
// the Lease.
func startFleet(t *testing.T, replicas int, proxied bool, flags ...string) *fleet {
	t.Helper()
	framework.FreeLease(t)
	f := &fleet{t: t, began: time.Now(), proxied: proxied, build: framework.Binary(), flags: flags}
	for range replicas {
		f.add()
	}
	for _, m := range f.members {
		m.Ready()
	}
	return f
}

// add starts another replica.
func (f *fleet) add() *member {
	f.t.Helper()
	m := &member{fleet: f, link: clustertest.StartLink(f.t, framework.Cluster())}
	if f.proxied {
		m.proxy = clustertest.StartHoldingProxy(f.t, framework.Cluster(), m.link)
		m.kubeconfig = m.proxy.Kubeconfig(f.t, daemon.Namespace, daemon.Name)
	} else {
		m.kubeconfig = m.link.Kubeconfig(f.t, framework.Cluster(), daemon.Namespace, daemon.Name)
	}
	var err error
	if m.credential, err = cluster.CredentialID(f.t.Context(), m.kubeconfig); err != nil {
		f.t.Fatal(err)
	}
	m.start()
	f.members = append(f.members, m)
	return m
}

// start starts or restarts the replica's process.
func (m *member) start() {
	m.Replica = framework.StartBuild(m.fleet.t, m.fleet.build, m.kubeconfig, m.fleet.flags...)
}

// freeze suspends the process; thaw resumes it.
func (m *member) freeze() { m.Signal(syscall.SIGSTOP) }

func (m *member) thaw() { m.Signal(syscall.SIGCONT) }

// partition makes the network drop the replica's packets, without errors. heal delivers what
// was sent in the meantime.
func (m *member) partition() { m.link.Hold(clustertest.Both) }

func (m *member) heal() { m.link.Release() }

// check returns the report on the fleet from the audit log.
func (f *fleet) check() *leaders.Report {
	f.t.Helper()
	r, err := f.tryCheck()
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fleet) tryCheck() (*leaders.Report, error) {
	replica, near := leaders.ServiceAccount(daemon.Namespace, daemon.Name), cluster.InNamespace(daemon.Namespace)
	events, err := framework.Cluster().AuditEvents(func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(f.began) && (replica(event) || near(event))
	})
	if err != nil {
		return nil, err
	}
	return leaders.Check(events, leaders.Options{Lease: daemon, Replica: replica, Sent: f.sent})
}

// sent returns when a write was sent, if it came through a proxy of the fleet.
func (f *fleet) sent(event auditv1.Event) (time.Time, bool) {
	for _, m := range f.members {
		if m.proxy == nil {
			continue
		}
		if at, ok := m.proxy.Sent(event); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// waitLeader waits until a replica other than these holds the Lease, and returns it. It does
// not check that the replica is alive, so callers must name those that they killed.
func (f *fleet) waitLeader(but ...*member) *member {
	f.t.Helper()
	var leader *member
	clustertest.WaitUntil(f.t, "a replica leads", func(context.Context) error {
		r, err := f.tryCheck()
		if err != nil {
			return err
		}
		if len(r.Epochs) == 0 || r.Epochs[len(r.Epochs)-1].End != leaders.Lasts {
			return errors.New("no replica has the Lease")
		}
		holder := r.Epochs[len(r.Epochs)-1]
		i := slices.IndexFunc(f.members, func(m *member) bool { return m.credential == holder.Credential })
		if i < 0 || slices.Contains(but, f.members[i]) {
			return fmt.Errorf("%s has the Lease", holder.Holder)
		}
		leader = f.members[i]
		return nil
	})
	return leader
}

// wantNoViolations fails the test if the audit log shows a violation.
func (f *fleet) wantNoViolations() *leaders.Report {
	f.t.Helper()
	r := f.check()
	if len(r.Violations) > 0 {
		f.t.Fatalf("violations:\n%s", r)
	}
	return r
}

// waitServed waits until a leader has made five more writes, and fails the test if the audit
// log shows a violation.
func (f *fleet) waitServed() {
	f.t.Helper()
	before := f.check().Writes
	clustertest.WaitUntil(f.t, "a leader writes", func(context.Context) error {
		if n := f.check().Writes; n < before+5 {
			return fmt.Errorf("%d writes, %d of them new", n, n-before)
		}
		return nil
	})
	f.wantNoViolations()
}
