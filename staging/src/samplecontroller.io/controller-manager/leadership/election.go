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

// watchdogTolerance is how long after its expiry a Lease may go unrenewed before
// the elector counts as stuck; as in kube-controller-manager.
const watchdogTolerance = 20 * time.Second

// errGone is why a term is lost whose Lease was deleted.
var errGone = errors.New("the Lease is gone")

// Election campaigns for one Lease. Make it with [New].
type Election struct {
	config   Config
	observer *observer
	watchdog *leaderelection.HealthzAdaptor
	fit      func() error         // see AssessBy
	term     atomic.Pointer[Term] // that of the present campaign
	holder   atomic.Pointer[string]
}

// New returns an election, or says what is wrong with its configuration.
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

// Run campaigns, and calls lead with a term each time that it leads, until ctx
// ends. It returns when lead has returned and the Lease, if held, is released.
//
// lead must work until the term's context ends, and return nil when all that it
// started has ended: only then is it safe for another process to lead. If that was
// because the Lease was lost, Run campaigns again. If lead returns an error, it is
// returned, and the Lease is left to expire: the process should then end.
//
// Run may be called again after it has returned, but never while it runs.
func (e *Election) Run(ctx context.Context, lead func(*Term) error) error {
	watchCtx, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { e.observer.watch(watchCtx, e.config.RetryPeriod/2) })
	watching.Go(func() { e.assessRepeatedly(watchCtx) })
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

// campaign runs for the Lease and leads for one term. It returns again if that was
// lost or handed over, and another is to follow.
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
	// The elector outlives ctx: it goes on renewing while the work drains. It has no
	// logger, because it cannot tell a lost race from an error; the lock can.
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
		// Before this it only waits: after a lost term it may have read a Lease that
		// still names this process, and then wait while another process leads.
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
	if lost != nil {
		e.observer.doubt()
	}
	if ctx.Err() != nil || lost == nil {
		// Even if it was not seen to lead: a request that was cut off may have won.
		releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.RenewDeadline)
		defer cancel()
		if err := lock.release(releaseCtx); err != nil {
			logger.Error(err, "Lease could not be released, if held it is left to expire", "lease", e.lease())
		}
	}
	if led {
		e.stopped(lost)
	}
	handedOver := errors.Is(context.Cause(term.Ctx), errHandedOver)
	return ctx.Err() == nil && (lost != nil || handedOver), nil
}

// lead runs the work for one term, which ends with ctx or is lost.
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
				logger.Info("Lost the lease, nothing is written until this process leads again", "lease", e.lease(), "reason", lost.Error())
			}
		case <-ended:
			term.lose(fmt.Errorf("the Lease could not be renewed for %v", e.config.RenewDeadline))
			// An elector that has stopped is not stuck, however long the work drains.
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

// stopped tells that a term has ended whose work has drained.
func (e *Election) stopped(lost error) {
	e.event("stopped leading")
	if lost == nil {
		e.config.Metrics.ended(endReleased)
	} else {
		e.config.Metrics.ended(endLost)
	}
}

// observed ends the term if the Lease is another's, or is gone.
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
		term.lose(errors.New("the Lease was emptied"))
	default:
		term.lose(fmt.Errorf("the Lease is held by %s", holder))
	}
}

// Identity is who this process campaigns as.
func (e *Election) Identity() string { return e.config.Identity }

// Name is the name of the election's health check, as in kube-controller-manager.
func (e *Election) Name() string { return "leaderElection" }

// Check fails if the elector is stuck during a term: it has not renewed the Lease for
// 20 s longer than that lasts, and has not noticed. A standby is healthy, whatever the
// Lease says, and so is a process that lost the Lease.
func (e *Election) Check(request *http.Request) error { return e.watchdog.Check(request) }

func (e *Election) lease() klog.ObjectRef { return klog.KRef(e.config.Namespace, e.config.Name) }

// event records what became of this process as an Event of the Lease.
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
		// The elector's own release would erase the Lease of a new holder after a
		// lost term, and runs before the work has drained.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { acquired() },
			OnStoppedLeading: func() {},
		},
	}
}
