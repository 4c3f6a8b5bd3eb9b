// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Annotations of the Lease, by which a leader that is not fit finds a standby that is. The
// names follow KEP-4355, whose fields of a Lease need a feature gate of the API server.
const (
	// offeredAnnotation is why the leader wants to hand over.
	offeredAnnotation = "leadership.samplecontroller.io/offered"
	// preferredAnnotation is the identity of the standby that accepts. It stays in the
	// released Lease, which others leave to that standby for the duration of theirs.
	preferredAnnotation = "leadership.samplecontroller.io/preferred-holder"
)

const (
	// assessPeriod is how long a process waits, up to half as much longer by jitter,
	// before it looks again whether it is fit, and at what others say.
	assessPeriod = 5 * time.Second
	// offerAfter is how long a leader is not fit before it offers the Lease. By then a
	// standby that has the same trouble is not fit either.
	offerAfter = 2 * time.Minute
	// refuseFor is how long a process that handed over accepts no offer. So trouble that
	// all share, and that shows only in a leader, has each replica lead once at most.
	refuseFor = time.Hour
)

// errHandedOver is why a term ended whose Lease was handed over.
var errHandedOver = errors.New("the Lease is handed over to a replica that is fit to lead")

// AssessBy makes the election hand over: fit returns why this process cannot do a leader's
// work, and nil if it can. A leader that is not fit for 2 minutes offers the Lease. If a
// standby that is fit accepts, the leader ends its term in order, and that standby leads.
// If none does, nothing changes. fit must be cheap; what it returns can be seen by all who
// may read the Lease. Call AssessBy before [Election.Run].
func (e *Election) AssessBy(fit func() error) { e.fit = fit }

// assessRepeatedly assesses until ctx ends.
func (e *Election) assessRepeatedly(ctx context.Context) {
	if e.fit == nil {
		return
	}
	s := &situation{identity: e.config.Identity}
	// By the jitter it does not meet the renewals of another each time.
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) { e.assess(ctx, s) }, assessPeriod, 0.5, true)
}

// assess does what the situation demands.
func (e *Election) assess(ctx context.Context, s *situation) {
	term := e.term.Load()
	lease := e.observer.seen()
	s.observe(time.Now(), e.fit(), e.Status().Leading && term.Ctx.Err() == nil, lease)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lease", e.lease())
	var err error
	switch s.next() {
	case offer:
		logger.Info("Offering the lease: this process is not fit to lead", "reason", s.unfit.Error())
		err = e.annotate(ctx, lease, s.unfit.Error(), "")
	case withdraw:
		logger.Info("Keeping the lease: this process is fit to lead")
		err = e.annotate(ctx, lease, "", "")
	case accept:
		logger.Info("Accepting the lease", "holder", held(lease), "offered", s.offered)
		err = e.annotate(ctx, lease, s.offered, e.config.Identity)
	case handOver:
		logger.Info("Handing over the lease", "to", s.preferred, "reason", s.unfit.Error())
		e.event("hands over to " + s.preferred + ": " + s.unfit.Error())
		s.handedOver = s.now
		term.end(errHandedOver)
	}
	if err != nil { // it is tried again if it still matters
		logger.V(2).Info("Lease cannot be annotated", "err", err)
	}
}

// annotate writes the annotations to the given version of the Lease, and removes empty ones.
// It does not renew the Lease: other processes look at the spec.
func (e *Election) annotate(ctx context.Context, lease *coordinationv1.Lease, offered, preferred string) error {
	ctx, cancel := context.WithTimeout(ctx, e.observer.timeout)
	defer cancel()
	lease = lease.DeepCopy()
	for key, value := range map[string]string{offeredAnnotation: offered, preferredAnnotation: preferred} {
		if value == "" {
			delete(lease.Annotations, key)
		} else {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, value)
		}
	}
	lease, err := e.observer.client.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("annotating the Lease: %w", err)
	}
	e.observer.observe(ctx, lease, false)
	return nil
}

// move is what a process does about its fitness and that of others.
type move int

const (
	stay     move = iota
	offer         // as leader: ask for a standby that is fit
	withdraw      // as leader: take the offer back
	handOver      // as leader: end the term
	accept        // as standby
)

// situation is what a process goes by when it decides.
type situation struct {
	identity string
	now      time.Time
	// unfit is why the process is not fit to lead, nil if it is, and since is when that
	// began.
	unfit error
	since time.Time
	// leading says whether the process leads, and is to go on.
	leading    bool
	handedOver time.Time // last
	// What the Lease says.
	holder, offered, preferred string
}

func (s *situation) observe(now time.Time, unfit error, leading bool, lease *coordinationv1.Lease) {
	if s.unfit == nil && unfit != nil {
		s.since = now
	}
	s.now, s.unfit, s.leading = now, unfit, leading
	s.holder, s.offered, s.preferred = held(lease), "", ""
	if lease != nil {
		s.offered, s.preferred = lease.Annotations[offeredAnnotation], lease.Annotations[preferredAnnotation]
	}
}

func (s *situation) next() move {
	switch {
	case s.leading && s.unfit == nil && (s.offered != "" || s.preferred != ""):
		return withdraw
	case s.leading && s.unfit != nil && s.now.Sub(s.since) >= offerAfter:
		switch {
		case s.offered == "":
			return offer
		case s.preferred != "" && s.preferred != s.identity:
			return handOver
		}
	case !s.leading && s.unfit == nil && s.offered != "" && s.preferred == "" && s.holder != "" && s.holder != s.identity:
		if s.handedOver.IsZero() || s.now.Sub(s.handedOver) >= refuseFor {
			return accept
		}
	}
	return stay
}
