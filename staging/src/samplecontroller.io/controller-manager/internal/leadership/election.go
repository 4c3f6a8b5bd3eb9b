// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// watchdogTolerance is how long after its expiry a Lease may stay unrenewed before the
// elector counts as stuck, as in kube-controller-manager.
const watchdogTolerance = 20 * time.Second

// errGone is why a term is lost when its Lease is deleted.
var errGone = errors.New("the Lease was deleted")

// Election campaigns for one Lease. Create it with [New].
type Election struct {
	config   Config
	observer *observer
	watchdog *leaderelection.HealthzAdaptor
	fit      func() []string      // see AssessBy
	term     atomic.Pointer[Term] // of the current campaign
	holder   atomic.Pointer[string]
}

// New returns an election, or an error if config is invalid.
func New(config Config) (*Election, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	e := &Election{config: config, watchdog: leaderelection.NewLeaderHealthzAdaptor(watchdogTolerance)}
	e.observer = newObserver(config, e.observed)
	if _, err := leaderelection.NewLeaderElector(e.electorConfig(&lock{observer: e.observer}, func() {})); err != nil {
		return nil, fmt.Errorf("configuring leader election: %w", err)
	}
	return e, nil
}

// Run campaigns until ctx ends, and calls lead with a term each time this process leads.
// It returns when lead has returned and the Lease, if held, is released.
//
// lead must work until the context of the term ends. It must return nil once everything
// that it started has ended: only then may another process lead. Run campaigns again if
// the Lease was lost. If lead returns an error, Run returns that error and leaves the
// Lease to expire. The process should then exit.
//
// Run may be called again after it has returned, but not concurrently.
func (e *Election) Run(ctx context.Context, lead func(*Term) error) error {
	watchCtx, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { e.observer.watch(watchCtx, e.config.RetryPeriod/2) })
	watching.Go(func() { e.assessRepeatedly(watchCtx) })
	watching.Go(func() { e.tryRepeatedly(watchCtx) })
	defer func() {
		stopWatch()
		watching.Wait()
	}()
	for {
		if again, err := e.campaign(ctx, lead); !again || err != nil {
			return err
		}
	}
}

// campaign tries to acquire the Lease and leads for one term. It returns again if the term
// was lost or handed over and another campaign must follow.
func (e *Election) campaign(ctx context.Context, lead func(*Term) error) (again bool, err error) {
	logger := klog.FromContext(ctx)
	term := newTerm(ctx, e.config.validity())
	defer term.over()
	e.term.Store(term)
	lock := &lock{observer: e.observer, namespace: e.config.Namespace, term: term, logger: logger}
	acquired, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(e.electorConfig(lock, func() { close(acquired) }))
	if err != nil {
		return false, fmt.Errorf("configuring leader election: %w", err)
	}
	// The elector outlives ctx: it keeps renewing while the work drains. It gets no logger,
	// because it cannot tell a lost race from an error, which the lock can.
	electorCtx, stopElector := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer stopElector()
	logger.Info("Campaigning for the lease", "lease", e.lease(), "identity", e.config.Identity)
	go func() {
		defer close(ended)
		elector.Run(electorCtx)
	}()

	led := false
	select {
	case <-term.Ctx.Done():
	case <-acquired:
		led = true
		// Before it leads, the elector only waits. After a lost term it may have read a Lease
		// that still names this process, and then wait while another process leads.
		e.watchdog.SetLeaderElection(elector)
		e.config.Metrics.handedOver(time.Since(lock.free))
		err = e.lead(term, lead, ended)
	}
	term.over()
	stopElector()
	<-ended
	e.watchdog.SetLeaderElection(nil)
	if err != nil {
		e.config.Metrics.ended(endAbandoned)
		return false, err
	}
	lost := term.lost()
	if ctx.Err() != nil || lost == nil {
		// Release even if the process never led: a canceled request may have succeeded.
		releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.RenewDeadline)
		defer cancel()
		if err := lock.release(releaseCtx); err != nil {
			logger.Error(err, "Failed to release lease, leaving it to expire", "lease", e.lease())
		}
	}
	if led {
		e.stopped(lost)
	}
	handedOver := errors.Is(context.Cause(term.Ctx), errHandedOver)
	return ctx.Err() == nil && (lost != nil || handedOver), nil
}

// lead runs the work for one term, until ctx ends or the term is lost.
func (e *Election) lead(term *Term, lead func(*Term) error, ended <-chan struct{}) error {
	logger := klog.FromContext(term.Ctx)
	logger.Info("Leading", "lease", e.lease())
	e.event("became leader")
	e.config.Gate.admit(term)
	drained := make(chan error, 1)
	go func() { drained <- lead(term) }()
	over := term.Ctx.Done()
	var since time.Time
	for {
		select {
		case <-over:
			since, over = time.Now(), nil
			if lost := term.lost(); lost != nil {
				logger.Info("Lost the lease, writes are refused until this process leads again", "lease", e.lease(), "reason", lost.Error())
			}
		case <-ended:
			term.lose(fmt.Errorf("the Lease could not be renewed for %v", e.config.RenewDeadline))
			// A stopped elector is not stuck, however long the work takes to drain.
			e.watchdog.SetLeaderElection(nil)
			ended = nil
		case err := <-drained:
			if !since.IsZero() {
				e.config.Metrics.drained(time.Since(since))
			}
			return err
		}
	}
}

// stopped reports that the work of a term has drained.
func (e *Election) stopped(lost error) {
	e.event("stopped leading")
	if lost == nil {
		e.config.Metrics.ended(endReleased)
	} else {
		e.config.Metrics.ended(endLost)
	}
}

// observed ends the term if another process holds the Lease, or nobody does.
func (e *Election) observed(ctx context.Context, lease *coordinationv1.Lease) {
	holder := held(lease)
	e.config.Metrics.expires(e.observer.expiry())
	if was := e.holder.Swap(&holder); (was == nil || *was != holder) && holder != "" && holder != e.config.Identity {
		klog.FromContext(ctx).Info("Another process leads", "lease", e.lease(), "holder", holder)
	}
	term := e.term.Load()
	if term == nil || !term.begun() || holder == e.config.Identity {
		return
	}
	switch {
	case lease == nil:
		term.lose(errGone)
	case holder == "":
		term.lose(errors.New("the holder was removed from the Lease"))
	default:
		term.lose(fmt.Errorf("the Lease is held by %s", holder))
	}
}

// Identity returns the identity under which this process campaigns.
func (e *Election) Identity() string { return e.config.Identity }

// Name returns the name of the election's health check, as in kube-controller-manager.
func (e *Election) Name() string { return "leaderElection" }

// Check fails if the elector is stuck during a term: the Lease expired more than 20 s ago
// and the elector has not noticed. A standby is healthy whatever the Lease says, and so is
// a process that lost the Lease.
func (e *Election) Check(request *http.Request) error { return e.watchdog.Check(request) }

func (e *Election) lease() klog.ObjectRef { return klog.KRef(e.config.Namespace, e.config.Name) }

// event records an Event about this process for the Lease.
func (e *Election) event(what string) {
	if e.config.Recorder == nil {
		return
	}
	subject := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{Kind: "Lease", APIVersion: coordinationv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.config.Namespace, Name: e.config.Name},
	}
	if lease := e.observer.seen(); lease != nil {
		subject.ObjectMeta = lease.ObjectMeta
	}
	e.config.Recorder.Eventf(subject, corev1.EventTypeNormal, "LeaderElection", "%s %s", e.config.Identity, what)
}

func (e *Election) electorConfig(lock *lock, acquired func()) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: e.config.LeaseDuration,
		RenewDeadline: e.config.RenewDeadline,
		RetryPeriod:   e.config.RetryPeriod,
		Name:          e.config.Name,
		WatchDog:      e.watchdog,
		// The elector would release before the work has drained, and after a lost term it
		// would erase the Lease of the new holder.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { acquired() },
			OnStoppedLeading: func() {},
		},
	}
}
