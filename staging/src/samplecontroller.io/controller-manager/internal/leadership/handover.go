// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Annotations of the Lease through which a leader that is not fit finds a standby that is.
// The names follow KEP-4355, whose Lease fields need a feature gate of the API server.
const (
	// offeredAnnotation is why the leader wants to hand over.
	offeredAnnotation = "leadership.samplecontroller.io/offered"
	// preferredAnnotation is the identity of the standby that accepts. It stays in the
	// released Lease. Others then leave the Lease to that standby for their LeaseDuration.
	preferredAnnotation = "leadership.samplecontroller.io/preferred-holder"
)

const (
	// assessPeriod is how long a process waits before it assesses its own fitness and the
	// annotations again. Jitter adds up to half of it.
	assessPeriod = 5 * time.Second
	// offerAfter is how long a reason must last before a leader offers the Lease for it. By then
	// a standby with the same problem has the same reason.
	offerAfter = 20 * time.Second
	// refuseFor is how long a process that handed over accepts no offer. So if all
	// replicas share a problem that shows only in a leader, each leads at most once.
	refuseFor = time.Hour
)

// errHandedOver is the cause when a term ends by a handover.
var errHandedOver = errors.New("the Lease was handed over to a replica that is fit to lead")

// AssessBy enables handover. fit returns the reasons why this process cannot do all the work of
// a leader, none if it can. A leader with reasons that last for 20 seconds offers the Lease. A
// standby accepts if it has some of these reasons at most, and no others: it can do more. Then
// the leader ends its term gracefully, and that standby leads. If none accepts, nothing changes.
//
// fit must be cheap. A reason must have the same text in all processes, and not contain "; ".
// It is visible to everyone who may read the Lease. Call AssessBy before [Election.Run].
func (e *Election) AssessBy(fit func() []string) { e.fit = fit }

// assessRepeatedly assesses the situation until ctx ends.
func (e *Election) assessRepeatedly(ctx context.Context) {
	if e.fit == nil {
		return
	}
	s := &situation{identity: e.config.Identity, since: map[string]time.Time{}}
	// Jitter keeps it from colliding with the renewals of another process every time.
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) { e.assess(ctx, s) }, assessPeriod, 0.5, true)
}

// assess makes the next move.
func (e *Election) assess(ctx context.Context, s *situation) {
	term := e.term.Load()
	lease := e.observer.seen()
	s.observe(time.Now(), e.fit(), e.Status().Leading && term.Ctx.Err() == nil, lease)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lease", e.lease())
	var err error
	switch s.next() {
	case offer:
		logger.Info("Offering the lease: this process is not fit to lead", "reason", s.lasting())
		err = e.annotate(ctx, lease, s.lasting(), "")
	case withdraw:
		logger.Info("Keeping the lease: this process is fit to lead")
		err = e.annotate(ctx, lease, "", "")
	case accept:
		logger.Info("Accepting the lease", "holder", held(lease), "offered", s.offered)
		err = e.annotate(ctx, lease, s.offered, e.config.Identity)
	case handOver:
		logger.Info("Handing over the lease", "to", s.preferred, "reason", s.offered)
		e.event("hands over to " + s.preferred + ": " + s.offered)
		s.handedOver = s.now
		term.end(errHandedOver)
	}
	if err != nil { // retried in the next round if still needed
		logger.V(2).Info("Failed to annotate lease", "err", err)
	}
}

// annotate writes the annotations to the given version of the Lease and removes empty ones.
// This does not renew the Lease, because other processes look only at the spec.
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

// move is what a process does about its own fitness and that of others.
type move int

const (
	stay     move = iota
	offer         // as leader: ask for a fit standby
	withdraw      // as leader: withdraw the offer
	handOver      // as leader: end the term
	accept        // as standby
)

// between separates the reasons in the annotation.
const between = "; "

// situation is the input of the decision.
type situation struct {
	identity string
	now      time.Time
	// unfit are the reasons why the process is not fit to lead. since is when each began.
	unfit []string
	since map[string]time.Time
	// leading is whether the process leads and has not been told to stop.
	leading    bool
	handedOver time.Time // last
	// From the Lease.
	holder, offered, preferred string
}

func (s *situation) observe(now time.Time, unfit []string, leading bool, lease *coordinationv1.Lease) {
	maps.DeleteFunc(s.since, func(reason string, _ time.Time) bool { return !slices.Contains(unfit, reason) })
	for _, reason := range unfit {
		if _, known := s.since[reason]; !known {
			s.since[reason] = now
		}
	}
	s.now, s.unfit, s.leading = now, unfit, leading
	s.holder, s.offered, s.preferred = held(lease), "", ""
	if lease != nil {
		s.offered, s.preferred = lease.Annotations[offeredAnnotation], lease.Annotations[preferredAnnotation]
	}
}

// lasting returns the reasons that last long enough to offer the Lease for them.
func (s *situation) lasting() string {
	var lasting []string
	for _, reason := range s.unfit {
		if s.now.Sub(s.since[reason]) >= offerAfter {
			lasting = append(lasting, reason)
		}
	}
	slices.Sort(lasting)
	return strings.Join(lasting, between)
}

func (s *situation) next() move {
	switch lasting := s.lasting(); {
	case s.leading && len(s.unfit) == 0 && (s.offered != "" || s.preferred != ""):
		return withdraw
	case s.leading && lasting != "" && s.offered != "" && s.preferred != "" && s.preferred != s.identity:
		return handOver
	case s.leading && lasting != "" && lasting != s.offered:
		return offer
	case !s.leading && s.offered != "" && s.preferred == "" && s.holder != "" && s.holder != s.identity && s.fitter():
		if s.handedOver.IsZero() || s.now.Sub(s.handedOver) >= refuseFor {
			return accept
		}
	}
	return stay
}

// fitter reports whether this process can do all that the leader can, and more.
func (s *situation) fitter() bool {
	offered := sets.New(strings.Split(s.offered, between)...)
	return offered.HasAll(s.unfit...) && len(s.unfit) < len(offered)
}
