// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
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
	if config.Namespace == "" || config.Name == "" {
		return nil, fmt.Errorf("lease is %q in namespace %q, must have a name and a namespace", config.Name, config.Namespace)
	}
	if config.Client == nil {
		return nil, errors.New("client for the lease is missing")
	}
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
// term, and returns when lead has returned and the Lease is released. It may be
// called again for another term, but never while it runs.
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

	// The elector outlives ctx: it goes on renewing while the work drains.
	electorCtx, stopElector := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElector()
	go func() {
		defer close(over)
		// An elector that has stopped would fail the check of a healthy process
		// later, be it one that still drains.
		defer e.watchdog.SetLeaderElection(nil)
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
	// Even if it was not seen to lead: the request that was cut off may have won.
	if err := e.release(context.WithoutCancel(ctx), lock); err != nil {
		klog.FromContext(ctx).Error(err, "Lease could not be released, if held it is left to expire", "lease", e.lease())
	}
	return nil
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

// release gives the Lease up if this process still holds it.
func (e *Election) release(ctx context.Context, lock *resourcelock.LeaseLock) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
	defer cancel()
	// A renewal that was cut off may be committed between reading and writing.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return e.tryRelease(ctx, lock) })
}

// tryRelease overwrites only what it has just read: the lock updates with the
// resourceVersion of its last Get.
func (e *Election) tryRelease(ctx context.Context, lock *resourcelock.LeaseLock) error {
	record, _, err := lock.Get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if record.HolderIdentity != e.config.Identity {
		klog.FromContext(ctx).V(2).Info("Lease is not ours to release", "lease", e.lease(), "holder", record.HolderIdentity)
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
		return err
	}
	klog.FromContext(ctx).Info("Released lease", "lease", e.lease())
	return nil
}

func (e *Election) lease() klog.ObjectRef { return klog.KRef(e.config.Namespace, e.config.Name) }

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
