// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// attempts bounds how often a round is repeated that does not count.
const attempts = 5

// settle is how long both replicas are left alone before a fault, a part of the retry
// period aside: whether the leader has just renewed, or the standby just looked, is
// chance.
const settle = time.Second

// errStillWrote is why a round does not count.
var errStillWrote = errors.New("the leader that was signalled wrote itself")

// fault is what ends a leader.
type fault struct {
	name   string
	signal syscall.Signal
}

var (
	termination = fault{"SIGTERM", syscall.SIGTERM}
	kill        = fault{"kill -9", syscall.SIGKILL}
)

// handover is what the audit log says of one, in time since the fault.
type handover struct {
	freed   time.Duration // the Lease was released, or had expired
	taken   time.Duration // the next leader had it
	written time.Duration // its write for the change was received
}

// handOver ends the leader, changes a Foo just then, and starts the replica again when
// the next leader has written. It is repeated if the leader was not ended fast enough
// to miss the change.
func (f *fleet) handOver(ctx context.Context, fault fault) (h handover, err error) {
	for range attempts {
		if h, err = f.tryHandOver(ctx, fault); !errors.Is(err, errStillWrote) {
			break
		}
	}
	return h, err
}

func (f *fleet) tryHandOver(ctx context.Context, fault fault) (handover, error) {
	leader, err := f.leader()
	if err != nil {
		return handover{}, err
	}
	foo := <-f.lab.foos
	to := "nginx:" + foo
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := f.watch(ctx, foo)
	if err != nil {
		return handover{}, err
	}
	defer w.Stop()
	time.Sleep(settle + rand.N(f.retryPeriod))

	// The signal comes first, or the leader might do the work itself.
	at := time.Now()
	if err := leader.process.Signal(fault.signal); err != nil {
		return handover{}, err
	}
	if err := f.change(ctx, foo, to); err != nil {
		return handover{}, err
	}
	// By a watch and not by reading the audit log again and again, for which there are
	// no processors to spare.
	for seen := false; !seen; {
		event, ok := <-w.ResultChan()
		if !ok {
			return handover{}, fmt.Errorf("%s: nobody wrote for %s", f.name, foo)
		}
		seen = f.written(event.Object, to)
	}
	<-leader.process.Done()
	h, err := f.read(at, leader, foo)
	return h, errors.Join(err, f.start(ctx, leader))
}

// read finds in the audit log how the Lease went from a leader to the next, and the
// write of that.
func (f *fleet) read(at time.Time, leader *replica, foo string) (h handover, err error) {
	report, events, err := f.audit(at)
	if err != nil {
		return h, err
	}
	if f.stopsCleanly && len(report.Violations) > 0 {
		return h, fmt.Errorf("%s did what a replica must never do:\n%s", f.name, report)
	}
	for _, event := range events {
		if cluster.Call(event) != f.call || event.ObjectRef.Name != foo || event.ResponseStatus.Code/100 != 2 {
			continue
		}
		if by(leader)(event) {
			return h, errStillWrote
		}
		h.written = event.RequestReceivedTimestamp.Sub(at)
		break
	}
	n := len(report.Epochs)
	if n < 2 || report.Epochs[n-2].Credential != leader.credential || h.written == 0 {
		return h, fmt.Errorf("%s: the audit log has no handover with a write for %s:\n%s", f.name, foo, report)
	}
	h.freed, h.taken = report.Epochs[n-2].To.Sub(at), report.Epochs[n-1].From.Sub(at)
	return h, nil
}
