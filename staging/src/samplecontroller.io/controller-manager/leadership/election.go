// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// watchdogTolerance is how long after its expiry a Lease may go unrenewed before
// the elector counts as stuck; as in kube-controller-manager.
const watchdogTolerance = 20 * time.Second

// Config says for which Lease to campaign, as whom and how.
type Config struct {
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Identity of this process, unlike that of any other.
	Identity string
	// LeaseDuration is how long others wait after the last renewal that they
	// saw before they take the Lease. The record keeps whole seconds, so it must
	// be such.
	LeaseDuration time.Duration
	// RenewDeadline is how long renewing is tried before the Lease is given up
	// for lost.
	RenewDeadline time.Duration
	// RetryPeriod is how long to wait between two tries to acquire or renew.
	RetryPeriod time.Duration
	// Client writes the Lease. It should share no rate limiter with the work, and
	// its requests should time out well within RenewDeadline.
	Client coordinationv1.LeasesGetter
	// Recorder records who became leader as Events of the Lease; nil: nobody does.
	Recorder resourcelock.EventRecorder
}

// Election campaigns for one Lease. Make it with [New].
type Election struct {
	config   Config
	watchdog *leaderelection.HealthzAdaptor
}

// New returns an election, or says what is wrong with its configuration.
func New(config Config) (*Election, error) {
	if config.LeaseDuration < time.Second || config.LeaseDuration%time.Second != 0 {
		return nil, fmt.Errorf("lease duration is %v, must be whole seconds and at least 1s", config.LeaseDuration)
	}
	e := &Election{config: config, watchdog: leaderelection.NewLeaderHealthzAdaptor(watchdogTolerance)}
	if _, err := leaderelection.NewLeaderElector(e.electorConfig(e.lock(), func() {})); err != nil {
		return nil, fmt.Errorf("configuring leader election: %w", err)
	}
	return e, nil
}

// Run campaigns until it leads or ctx ends. Once it leads it calls lead with a
// term, and returns when lead has returned and the Lease is released.
//
// lead must work until the term ends, and return nil when all that it started
// has ended: only then is it safe for another process to lead. If it returns an
// error, that is returned and the Lease is left to expire. If the Lease was lost
// the error is [ErrLost].
func (e *Election) Run(ctx context.Context, lead func(*Term) error) error {
	lock := e.lock()
	acquired, over := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(e.electorConfig(lock, func() { close(acquired) }))
	if err != nil {
		return fmt.Errorf("configuring leader election: %w", err)
	}
	e.watchdog.SetLeaderElection(elector)
	// An elector that has stopped would fail the check of a healthy process later.
	defer e.watchdog.SetLeaderElection(nil)

	// The elector outlives ctx: it goes on renewing while the work drains.
	electorCtx, stopElector := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElector()
	go func() {
		defer close(over)
		elector.Run(electorCtx)
	}()

	select {
	case <-ctx.Done():
	case <-acquired:
		err = e.lead(ctx, lead, over)
	}
	stopElector()
	<-over
	if err != nil {
		return err
	}
	return e.release(context.WithoutCancel(ctx), lock)
}

// lead runs the work for one term, which ends with ctx or, lost, when the
// elector is over.
func (e *Election) lead(ctx context.Context, lead func(*Term) error, over <-chan struct{}) error {
	term := newTerm(ctx)
	defer term.stop()
	drained := make(chan error, 1)
	go func() { drained <- lead(term) }()
	select {
	case err := <-drained:
		return err
	case <-over:
		term.lose()
		return errors.Join(ErrLost, <-drained)
	}
}

// release gives the Lease up if this process still holds it. Only what was just
// read is overwritten: the lock updates with the resourceVersion of its last Get.
func (e *Election) release(ctx context.Context, lock *resourcelock.LeaseLock) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != e.config.Identity {
		// Not ours, or not to be read: then it is not ours to write either.
		klog.FromContext(ctx).V(2).Info("Lease not released", "lease", klog.KRef(e.config.Namespace, e.config.Name), "err", err)
		return nil
	}
	now := metav1.Now()
	err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, // as client-go marks a Lease that is free to take
		AcquireTime:          now,
		RenewTime:            now,
		LeaderTransitions:    record.LeaderTransitions,
	})
	if err != nil {
		return fmt.Errorf("releasing lease %s/%s: %w", e.config.Namespace, e.config.Name, err)
	}
	klog.FromContext(ctx).Info("Released lease", "lease", klog.KRef(e.config.Namespace, e.config.Name))
	return nil
}

// Name is the name of the election's health check, as in kube-controller-manager.
func (e *Election) Name() string { return "leaderElection" }

// Check fails if the elector is stuck: it holds the Lease, has not renewed it for
// long, and has not noticed. A standby, and a process that lost the Lease, are
// healthy.
func (e *Election) Check(request *http.Request) error { return e.watchdog.Check(request) }

func (e *Election) lock() *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.config.Namespace, Name: e.config.Name},
		Client:     e.config.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.config.Identity, EventRecorder: e.config.Recorder},
	}
}

func (e *Election) electorConfig(lock resourcelock.Interface, acquired func()) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: e.config.LeaseDuration,
		RenewDeadline: e.config.RenewDeadline,
		RetryPeriod:   e.config.RetryPeriod,
		Name:          e.config.Name,
		WatchDog:      e.watchdog,
		// The elector's own release would erase the Lease of a new holder after a
		// lost term, and runs before the work has drained.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { acquired() },
			OnStoppedLeading: func() {},
		},
	}
}
