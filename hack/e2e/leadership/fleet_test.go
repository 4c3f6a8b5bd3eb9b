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

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
	"samplecontroller.io/sample-controller-manager/hack/e2e/leaders"
)

// fleetOptions say what replicas are wanted.
type fleetOptions struct {
	replicas       int
	lease          types.NamespacedName // by which they elect their leader
	serviceAccount types.NamespacedName // which they all are, each with a token of its own
	// proxied puts a proxy before each replica's link, which can hold single writes and
	// knows when each was sent. The replica then has its connections with the proxy, and
	// does not see those over the link fail.
	proxied bool
	// start starts a replica.
	start func(t *testing.T, kubeconfig string) *framework.Program
}

// fleet is replicas of one program that elect a leader by a Lease.
type fleet struct {
	fleetOptions
	t       *testing.T
	began   time.Time
	members []*member
}

// member is a replica with credentials and a network of its own, which stay when its
// process is started again.
type member struct {
	*framework.Program
	fleet      *fleet
	link       *clustertest.Link
	proxy      *clustertest.HoldingProxy // nil unless the fleet is proxied
	kubeconfig string
	credential string // its ID in the audit log
}

// startFleet starts all replicas. What happened to the Lease before is left out of
// account.
func startFleet(t *testing.T, o fleetOptions) *fleet {
	t.Helper()
	f := &fleet{fleetOptions: o, t: t, began: time.Now()}
	for range o.replicas {
		f.add()
	}
	return f
}

// add starts one more replica.
func (f *fleet) add() *member {
	f.t.Helper()
	m := &member{fleet: f, link: clustertest.StartLink(f.t, framework.Cluster())}
	if f.proxied {
		m.proxy = clustertest.StartHoldingProxy(f.t, framework.Cluster(), m.link)
		m.kubeconfig = m.proxy.Kubeconfig(f.t, f.serviceAccount.Namespace, f.serviceAccount.Name)
	} else {
		m.kubeconfig = m.link.Kubeconfig(f.t, framework.Cluster(), f.serviceAccount.Namespace, f.serviceAccount.Name)
	}
	var err error
	if m.credential, err = cluster.CredentialID(m.kubeconfig); err != nil {
		f.t.Fatal(err)
	}
	m.start()
	f.members = append(f.members, m)
	return m
}

// start starts the replica's process, for the first time or after the last has ended.
func (m *member) start() { m.Program = m.fleet.fleetOptions.start(m.fleet.t, m.kubeconfig) }

// freeze stops the process where it is; thaw lets it go on.
func (m *member) freeze() { m.Signal(syscall.SIGSTOP) }

func (m *member) thaw() { m.Signal(syscall.SIGCONT) }

// kill ends the process as nothing can prepare for.
func (m *member) kill() {
	m.Signal(syscall.SIGKILL)
	<-m.Done
}

// partition takes the replica's network down, so that it neither gets through nor
// learns so; heal brings what was sent meanwhile.
func (m *member) partition() { m.link.Hold(clustertest.Both) }

func (m *member) heal() { m.link.Release() }

// check returns what the audit log says of the fleet.
func (f *fleet) check() *leaders.Report {
	f.t.Helper()
	r, err := f.tryCheck()
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fleet) tryCheck() (*leaders.Report, error) {
	replica, near := leaders.ServiceAccount(f.serviceAccount.Namespace, f.serviceAccount.Name), cluster.InNamespace(f.lease.Namespace)
	events, err := framework.Cluster().AuditEvents(func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(f.began) && (replica(event) || near(event))
	})
	if err != nil {
		return nil, err
	}
	return leaders.Check(events, leaders.Options{Lease: f.lease, Replica: replica, Sent: f.sent})
}

// sent says when a write was sent, if it came through a proxy of the fleet.
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

// WaitLeader waits until a replica other than these holds the Lease, and returns it.
// Whether it lives is another matter: name those that were killed.
func (f *fleet) waitLeader(but ...*member) *member {
	f.t.Helper()
	var leader *member
	clustertest.WaitUntil(f.t, "a replica leads", func(context.Context) error {
		r, err := f.tryCheck()
		if err != nil {
			return err
		}
		if len(r.Epochs) == 0 || r.Epochs[len(r.Epochs)-1].End != leaders.Lasts {
			return errors.New("nobody has the Lease")
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

// waitWrites waits until the replicas have made so many more writes.
func (f *fleet) waitWrites(more int) {
	f.t.Helper()
	before := f.check().Writes
	clustertest.WaitUntil(f.t, "a leader writes", func(context.Context) error {
		if n := f.check().Writes; n < before+more {
			return fmt.Errorf("there are %d writes, of which %d are new", n, n-before)
		}
		return nil
	})
}
