// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

const (
	handovers   = 5 // in each trial
	retryPeriod = 2 * time.Second
)

// replica keeps its credentials when its process is restarted.
type replica struct {
	*process.Process
	kubeconfig string
	credential string // in the audit log
}

// handover measures the time from a signal to the leader until the first write of the next
// leader, for a change made at the same time.
func handover(signal syscall.Signal) func(context.Context, *trial) (result, error) {
	return func(ctx context.Context, t *trial) (r result, err error) {
		if err := t.serve(ctx); err != nil {
			return r, err
		}
		var replicas [2]replica
		for i := range replicas {
			r := &replicas[i]
			if r.kubeconfig, err = t.kubeconfig(ctx, t.candidate); err != nil {
				return result{}, err
			}
			if r.credential, err = cluster.CredentialID(ctx, r.kubeconfig); err != nil {
				return result{}, err
			}
			if err := t.startReplica(ctx, r); err != nil {
				return result{}, err
			}
			defer func() { err = errors.Join(err, r.Stop(stopGrace)) }()
		}
		if err := t.settled(ctx); err != nil {
			return r, err
		}
		var written []time.Duration
		for i := 0; len(written) < handovers; i++ {
			after, ok, err := t.handOver(ctx, &replicas, signal, fooName(i%t.n), 3+i)
			if err != nil {
				return r, err
			}
			if ok {
				written = append(written, after)
			}
		}
		return result{loadAverage: loadAverage(), values: []value{
			{"signal to first write, median, ms", milliseconds(median(written))},
			{"signal to first write, most, ms", milliseconds(slices.Max(written))},
		}}, nil
	}
}

// startReplica starts a replica and returns when it tries to get the Lease: its caches are
// filled by then.
func (t *trial) startReplica(ctx context.Context, r *replica) (err error) {
	since := time.Now()
	if r.Process, err = t.harness.start(t.candidate, r.kubeconfig); err != nil {
		return err
	}
	return t.await(ctx, r.Name()+" campaigns", func(context.Context) error {
		own := func(event auditv1.Event) bool {
			return leaders.Credential(event) == r.credential && event.RequestReceivedTimestamp.After(since) && isOfLease(event)
		}
		requests, err := t.cluster.AuditEvents(own)
		watches, watchesErr := t.cluster.AuditWatches(own)
		if err == nil && len(requests)+len(watches) == 0 {
			err = errors.New("not yet")
		}
		return errors.Join(err, watchesErr, r.Err())
	})
}

func isOfLease(event auditv1.Event) bool {
	return event.ObjectRef != nil && event.ObjectRef.Resource == "leases"
}

// writer returns who made the first (or, with last, the last) of the candidate's writes that
// match, and when it was received. It returns "" if there is none.
func (t *trial) writer(last bool, match func(auditv1.Event) bool) (credential string, at time.Time, err error) {
	events, err := t.cluster.AuditEvents(t.byCandidate, match,
		func(event auditv1.Event) bool { return !isRead(event) && !refused(event) })
	if err != nil || len(events) == 0 {
		return "", at, err
	}
	event := events[0]
	if last {
		event = events[len(events)-1]
	}
	return leaders.Credential(event), event.RequestReceivedTimestamp.Time, nil
}

// handOver stops the leader, returns after how long the next leader wrote, and restarts the replica. It is not ok
// if the old leader was faster.
func (t *trial) handOver(ctx context.Context, replicas *[2]replica, signal syscall.Signal, foo string,
	count int) (written time.Duration, ok bool, err error) {
	holder, _, err := t.writer(true, isOfLease)
	leader := &replicas[0]
	if holder != leader.credential {
		leader = &replicas[1]
	}
	// A random delay, because the time since the last renewal of the Lease is random in
	// practice.
	if err := errors.Join(err, sleep(ctx, quiet+rand.N(retryPeriod))); err != nil {
		return 0, false, err
	}
	at := time.Now()
	if err := errors.Join(leader.Signal(signal), scaleTo(count)(ctx, t.harness, t.namespace, foo)); err != nil {
		return 0, false, err
	}
	err = t.await(ctx, "a leader has written", func(ctx context.Context) error {
		// Reading the audit log takes CPU that the candidate may need.
		if err := sleep(ctx, quiet); err != nil {
			return err
		}
		by, wrote, err := t.writer(false, func(event auditv1.Event) bool {
			return event.ObjectRef != nil && event.ObjectRef.Resource == "deployments" && event.ObjectRef.Name == foo &&
				event.RequestReceivedTimestamp.After(at)
		})
		if wrote.IsZero() {
			return errors.Join(errors.New("not yet"), err)
		}
		written, ok = wrote.Sub(at), by != leader.credential
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	<-leader.Done()
	return written, ok, t.startReplica(ctx, leader)
}
