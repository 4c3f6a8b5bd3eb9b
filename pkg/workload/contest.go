// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

const (
	// quickCorrections is how many times a field is corrected at once.
	quickCorrections = 5
	// contestPeriod is how far apart corrections are after that. Twice as long
	// without one and the contest is over.
	contestPeriod = 10 * time.Second
	// rewriteRetry is after how long a field is written again that admission has changed,
	// while nothing else changes: the webhook or the policy may be gone.
	rewriteRetry = lastRetry
)

// corrections remembers how the fields of Deployments were written. Two writers of one
// field, such as an owner that declares the replicas and an autoscaler, would otherwise
// correct each other as fast as they can. And what admission changes in each write would be
// written again with each event. It is lost with the process; a new one starts from zero.
type corrections struct {
	byField *utilcache.Expiring // a correction by ownerField
}

type ownerField struct {
	owner types.UID
	field Field
}

// correction is what is remembered of one field.
type correction struct {
	generation int64     // of the owner: with a new one it wants something new
	count      int       // of corrections, each soon after the one before
	last       time.Time // of them
	rival      string    // whose value was corrected last
	rewritten  string    // the value that admission put instead of the last one, "" if it kept that
}

// of returns which fields are not to be written now, what to say of them, nil if there is
// nothing to say, and when to look again. live is nil if there is no Deployment.
func (c corrections) of(o Owner, live *appsv1.Deployment, now time.Time) (hold Fields, blocker *Blocker, again time.Duration) {
	if live == nil {
		return Fields{}, nil, 0
	}
	for f := range fieldCount {
		noted := c.get(o, f)
		if noted.last.IsZero() || noted.generation != o.GetGeneration() {
			continue
		}
		held, said, wait := noted.judge(o, live, f, now)
		if hold[f] = held; blocker == nil {
			blocker = said
		}
		again = sooner(again, wait)
	}
	return hold, blocker, again
}

// get returns what is remembered of a field of the owner, the zero value if nothing is.
func (c corrections) get(o Owner, f Field) correction {
	known, _ := c.byField.Get(ownerField{o.GetUID(), f})
	noted, _ := known.(correction)
	return noted
}

// judge is [corrections.of] for one field.
func (c correction) judge(o Owner, live *appsv1.Deployment, f Field, now time.Time) (hold bool, blocker *Blocker, again time.Duration) {
	elapsed := now.Sub(c.last)
	if c.rewritten != "" && c.rewritten == valueOf(live, f) && elapsed < rewriteRetry {
		return true, o.rewritten(live, f), rewriteRetry - elapsed
	}
	if c.count < quickCorrections || elapsed >= 2*contestPeriod {
		return false, nil, 0
	}
	if elapsed < contestPeriod {
		return true, o.contested(live, f, c.rival), contestPeriod - elapsed
	}
	return false, o.contested(live, f, c.rival), 2*contestPeriod - elapsed
}

// contested says that somebody else sets the field, too.
func (o Owner) contested(live *appsv1.Deployment, f Field, rival string) *Blocker {
	reason, what, declared := workloadv1alpha1.ReasonReplicasContested, "spec.replicas", "spec.replicas"
	if f == Image {
		reason, what, declared = workloadv1alpha1.ReasonImageContested, fmt.Sprintf("the image of container %q", containerName), "spec.image"
	}
	return &Blocker{
		Reason: reason,
		Message: fmt.Sprintf("%s of Deployment %q is also set by %s: leave %s of %s out, or stop the other writer; until then it is corrected once in %v",
			what, live.Name, rival, declared, o, contestPeriod),
	}
}

// rewritten says that admission changes what the owner declares for the field.
func (o Owner) rewritten(live *appsv1.Deployment, f Field) *Blocker {
	declared := "spec.replicas"
	if f == Image {
		declared = "spec.image"
	}
	return &Blocker{
		Reason: workloadv1alpha1.ReasonRewrittenByAdmission,
		Message: fmt.Sprintf("%s of %s is %q, and admission changed it to %q in Deployment %q: declare that, or exempt the Deployment from the webhook or policy; it is tried again once in %v",
			declared, o, o.declared(f), valueOf(live, f), live.Name, rewriteRetry),
	}
}

// note notes that the field was written as the owner declares it, and what came of it.
// before is nil if the Deployment was created.
func (c corrections) note(o Owner, f Field, before, after *appsv1.Deployment, fieldManager string, now time.Time) {
	rewritten := o.differs(after, f)
	if before == nil && !rewritten {
		return
	}
	noted := c.get(o, f)
	if noted.generation != o.GetGeneration() || now.Sub(noted.last) >= 2*contestPeriod {
		noted.count = 0
	}
	if before != nil {
		noted.count++
		noted.rival = rivalOf(before, f, fieldManager)
	}
	noted.generation, noted.last, noted.rewritten = o.GetGeneration(), now, ""
	ttl := 2 * contestPeriod
	if rewritten {
		noted.rewritten, ttl = valueOf(after, f), rewriteRetry
	}
	c.byField.Set(ownerField{o.GetUID(), f}, noted, ttl)
}

// sooner returns the shorter of two times after which to look again; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
