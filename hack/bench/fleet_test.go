// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

const (
	pollInterval = 50 * time.Millisecond
	stopGrace    = 20 * time.Second
)

// timing is how leaders are elected.
type timing struct {
	leaseDuration, renewDeadline, retryPeriod time.Duration
	writeTimeout                              time.Duration // how long one of our writes may take
}

// peer is a program of which replicas elect a leader, which has Foos cached and writes
// an object of a Foo's name when that is changed.
type peer struct {
	name           string
	serviceAccount types.NamespacedName
	lease          types.NamespacedName
	// command runs a replica.
	command func(kubeconfig string, t timing) (path string, args []string, err error)
	// standsBy is what a replica logs when its caches are filled.
	standsBy string
	// change changes a Foo in what this peer minds and the other does not.
	change func(ctx context.Context, foo, to string) error
	// watch watches what its leader writes for a Foo, and written tells that it did.
	watch   func(ctx context.Context, foo string) (watch.Interface, error)
	written func(object runtime.Object, to string) bool
	// call is that write in the audit log.
	call string
	// stopsCleanly says that it never writes without leading, so that it is an error if
	// it does.
	stopsCleanly bool
}

// fleet is two replicas of a peer.
type fleet struct {
	peer
	timing
	lab      *lab
	began    time.Time
	replicas []*replica
}

// replica has credentials that stay when its process is started again.
type replica struct {
	kubeconfig string
	credential string // its ID in the audit log
	process    *process.Process
}

// startFleet returns when both replicas are ready and one of them leads.
func (l *lab) startFleet(ctx context.Context, p peer, t timing) (*fleet, error) {
	f := &fleet{peer: p, timing: t, lab: l, began: time.Now()}
	for range 2 {
		r := &replica{}
		var err error
		if r.kubeconfig, err = l.cluster.ServiceAccountKubeconfig(ctx, p.serviceAccount.Namespace, p.serviceAccount.Name); err != nil {
			return f, err
		}
		if r.credential, err = cluster.CredentialID(r.kubeconfig); err != nil {
			return f, err
		}
		f.replicas = append(f.replicas, r)
		if err := f.start(ctx, r); err != nil {
			return f, err
		}
	}
	return f, await(ctx, "a replica leads", pollInterval, func() error {
		_, err := f.leader()
		return err
	})
}

// start starts a replica, for the first time or after it has ended, and waits until it
// is ready.
func (f *fleet) start(ctx context.Context, r *replica) error {
	path, args, err := f.command(r.kubeconfig, f.timing)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d", f.name, f.lab.started.Add(1))
	if r.process, err = f.lab.group.Start(name, nil, path, args...); err != nil {
		return err
	}
	path = f.lab.group.LogPath(name)
	return await(ctx, name+" stands by", pollInterval, func() error {
		log, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(log), f.standsBy) {
			err = errors.New("not yet")
		}
		return errors.Join(err, r.process.Err())
	})
}

// stop ends all replicas, which may have ended before; the leader last, so that no
// other leads meanwhile.
func (f *fleet) stop() error {
	leader, err := f.leader()
	if err != nil && len(f.replicas) > 0 {
		leader = f.replicas[0]
	}
	var errs []error
	for _, r := range f.replicas {
		if r != leader && r.process != nil {
			errs = append(errs, r.process.Stop(stopGrace))
		}
	}
	if leader != nil && leader.process != nil {
		errs = append(errs, leader.process.Stop(stopGrace))
	}
	return errors.Join(errs...)
}

// leader returns the replica that holds the Lease.
func (f *fleet) leader() (*replica, error) {
	report, _, err := f.audit(time.Now())
	if err != nil {
		return nil, err
	}
	if len(report.Epochs) == 0 || report.Epochs[len(report.Epochs)-1].End != leaders.Lasts {
		return nil, errors.New("nobody has the Lease")
	}
	holder := report.Epochs[len(report.Epochs)-1]
	i := slices.IndexFunc(f.replicas, func(r *replica) bool { return r.credential == holder.Credential })
	if i < 0 {
		return nil, fmt.Errorf("%s has the Lease", holder.Holder)
	}
	return f.replicas[i], nil
}

// standby returns the replica that does not lead.
func (f *fleet) standby() (*replica, error) {
	leader, err := f.leader()
	if err != nil {
		return nil, err
	}
	return f.replicas[1-slices.Index(f.replicas, leader)], nil
}

// audit returns the requests of the replicas that were received since, and what is to
// be said of the Lease and of them.
func (f *fleet) audit(since time.Time) (*leaders.Report, []auditv1.Event, error) {
	replica := leaders.ServiceAccount(f.serviceAccount.Namespace, f.serviceAccount.Name)
	events, err := f.lab.cluster.AuditEvents(replica, func(event auditv1.Event) bool {
		received := event.RequestReceivedTimestamp
		return received.After(since) || received.After(f.began) && event.ObjectRef != nil && event.ObjectRef.Resource == "leases"
	})
	if err != nil {
		return nil, nil, err
	}
	report, err := leaders.Check(events, leaders.Options{Lease: f.lease, Replica: replica})
	return report, events, err
}

// by matches requests of a replica.
func by(r *replica) func(auditv1.Event) bool {
	return func(event auditv1.Event) bool { return leaders.Credential(event) == r.credential }
}
