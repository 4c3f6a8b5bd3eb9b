// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

const (
	// contestedAfter is the number of corrections within contestWindow from which on the other
	// writer is named.
	contestedAfter = 3
	contestWindow  = time.Hour
	// quickCorrections is how many times a field is corrected without delay.
	quickCorrections = 5
	// contestPeriod is the interval of corrections after that. A field that needs no
	// correction for twice as long is corrected without delay again.
	contestPeriod = 10 * time.Second
	// rewriteRetry is the delay before a field that admission changed is written again, if
	// nothing else changes: the webhook or the policy may be gone.
	rewriteRetry = 5 * time.Minute
)

// corrections remembers how the fields of Deployments were written. Without it, two writers
// of one field, such as an owner that declares the replicas and an autoscaler, would
// correct each other as fast as they can. And a field that admission changes in each write
// would be written at every event. It is kept in memory only; a new process starts from
// zero.
type corrections struct {
	byField *utilcache.Expiring // a correction by ownerField
}

func newCorrections() corrections { return corrections{utilcache.NewExpiring()} }

type ownerField struct {
	owner types.UID
	field field
}

// correction is the history of one field.
type correction struct {
	declared   string      // the value that was written
	generation int64       // of the owner, at the last write
	written    time.Time   // time of the last write
	count      int         // consecutive corrections without a pause
	times      []time.Time // of the last corrections, at most contestedAfter
	rival      string      // field manager whose value was corrected last
	rewritten  string      // the value that admission set instead of ours, "" if it kept ours
}

// hold returns which fields must not be written now, the blocker to report, nil if there is
// none, and the delay before the next check. live is nil if there is no Deployment.
func (c corrections) hold(o Owner, live *appsv1.Deployment, now time.Time) (hold fieldSet, blocker *blocker,
	again time.Duration) {
	if live == nil {
		return fieldSet{}, nil, 0
	}
	for f := range fieldCount {
		noted := c.get(o, f)
		if noted.written.IsZero() || noted.declared != o.declared(f) {
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

// get returns the history of a field of the owner, the zero value if there is none.
func (c corrections) get(o Owner, f field) correction {
	known, _ := c.byField.Get(ownerField{o.GetUID(), f})
	noted, _ := known.(correction)
	return noted
}

// judge is [corrections.hold] for one field.
func (c correction) judge(o Owner, live *appsv1.Deployment, f field, now time.Time) (hold bool, blocker *blocker,
	again time.Duration) {
	elapsed := now.Sub(c.written)
	if c.rewritten != "" && c.rewritten == valueOf(live, f) && c.generation == o.GetGeneration() &&
		elapsed < rewriteRetry {
		return true, o.rewritten(live, f), rewriteRetry - elapsed
	}
	left := c.quiet() - elapsed
	if left <= 0 {
		return false, nil, 0
	}
	if c.count >= quickCorrections && elapsed < contestPeriod {
		return true, o.contested(live, f, c.rival), contestPeriod - elapsed
	}
	return false, o.contested(live, f, c.rival), left
}

// quiet returns how long after the last correction a field counts as contested. That is twice the
// longer one of the last pauses, so that the verdict does not change between two corrections. It
// returns 0 for a field that is not contested.
func (c correction) quiet() time.Duration {
	n := len(c.times)
	if n < contestedAfter || c.times[n-1].Sub(c.times[0]) > contestWindow {
		return 0
	}
	longest := contestPeriod
	for i := 1; i < n; i++ {
		longest = max(longest, c.times[i].Sub(c.times[i-1]))
	}
	return min(2*longest, contestWindow)
}

// contested returns the blocker for a field that another writer also sets.
func (o Owner) contested(live *appsv1.Deployment, f field, rival string) *blocker {
	reason, what, declared := workloadv1alpha1.ReasonReplicasContested, "spec.replicas", "spec.replicas"
	if f == fieldImage {
		reason, what, declared = workloadv1alpha1.ReasonImageContested, fmt.Sprintf("the image of container %q", containerName), "spec.image"
	}
	return &blocker{
		Reason: reason,
		Message: fmt.Sprintf("%s of Deployment %q is also set by %s: remove %s from %s, or stop the other writer; until then it is corrected at most every %v",
			what, live.Name, rival, declared, o, contestPeriod),
	}
}

// rewritten returns the blocker for a field that admission changes.
func (o Owner) rewritten(live *appsv1.Deployment, f field) *blocker {
	declared := "spec.replicas"
	if f == fieldImage {
		declared = "spec.image"
	}
	return &blocker{
		Reason: workloadv1alpha1.ReasonRewrittenByAdmission,
		Message: fmt.Sprintf("%s of %s is %q, and admission changed it to %q in Deployment %q: declare that value, or exempt the Deployment from the webhook or policy; it is retried every %v",
			declared, o, o.declared(f), valueOf(live, f), live.Name, rewriteRetry),
	}
}

// note records that the field was written as declared, and the result. before is nil if the
// Deployment was created. It reports whether the write corrected what another writer had set.
func (c corrections) note(o Owner, f field, before, after *appsv1.Deployment, fieldManager string,
	now time.Time) (corrected bool) {
	rewritten := o.differs(after, f)
	if before == nil && !rewritten {
		return false
	}
	noted := c.get(o, f)
	known := !noted.written.IsZero()
	switch declared := o.declared(f); {
	case before == nil, noted.rewritten != "" && noted.rewritten == valueOf(before, f):
		// Nobody else has set the field.
	case known && noted.declared != declared, !known && o.ObservedGeneration < o.GetGeneration():
		noted = correction{} // carrying out another spec is no correction
	default:
		corrected = true
		if now.Sub(noted.written) >= 2*contestPeriod {
			noted.count = 0
		}
		noted.count++
		noted.times = append(slices.Clone(noted.times), now)
		noted.times = noted.times[max(len(noted.times)-contestedAfter, 0):]
		noted.rival = rivalOf(before, f, fieldManager)
	}
	noted.declared, noted.generation, noted.written, noted.rewritten = o.declared(f), o.GetGeneration(), now, ""
	if rewritten {
		noted.rewritten = valueOf(after, f)
	}
	c.byField.Set(ownerField{o.GetUID(), f}, noted, contestWindow)
	return corrected
}

// sooner returns the shorter of two delays; 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
