// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
)

const (
	// firstRetry is the delay before a failed write is retried. Each further failure doubles
	// it up to soonRetry, because nothing enqueues the owner when the cause goes away. The
	// limit is lastRetry for a denial that only a change of the object can lift.
	firstRetry = 200 * time.Millisecond
	soonRetry  = 30 * time.Second
	lastRetry  = 5 * time.Minute
	// unknownRetry is the longest delay before a retry if the failure is known to be short.
	unknownRetry = time.Second

	// An error that may pass is reported after this many failures and this long, and as one that
	// does not pass after failedAfter.
	reportTries  = 3
	failingAfter = 10 * time.Second
	failedAfter  = time.Minute
	// forgetAfter is how long after the last failure that was not reported the next one counts as
	// the first. It exceeds the loop's delay between two of them.
	forgetAfter = 2 * time.Minute
)

// write is one write of a Deployment. The zero value means none.
type write struct {
	verb       string             // create or patch
	deployment *appsv1.Deployment // the new one, or the cached one to patch
	fields     Fields             // that a patch sets
}

func (w write) String() string {
	doing := map[string]string{"create": "creating", "patch": "patching"}[w.verb]
	return fmt.Sprintf("%s Deployment %q", doing, w.deployment.Name)
}

// isMissingPermission reports whether the write failed because the authorizer denied it, whatever
// the object.
func (w write) isMissingPermission(err error) bool {
	name := w.deployment.Name
	if w.verb == "create" {
		name = "" // it is not in the path
	}
	return writes.IsMissingPermission(err, writes.Write{Verb: w.verb, Resource: deploymentResource.String()}, name)
}

// together returns the write of all differing fields.
func (d Decision) together() write {
	return write{verb: "patch", deployment: d.Correct, fields: d.Differing}
}

// writes returns the writes that the decision needs, the most important first. Fields are written
// together, unless that was denied: then one does not hold back the other.
func (d Decision) writes(denied func(write) bool) []write {
	var writes []write
	if d.Create != nil {
		writes = append(writes, write{verb: "create", deployment: d.Create})
	}
	if d.Correct == nil {
		return writes
	}
	together := d.together()
	if !d.Differing.several() || !denied(together) {
		return append(writes, together)
	}
	for f := range fieldCount {
		one := together
		one.fields = Fields{}
		one.fields[f] = true
		writes = append(writes, one)
	}
	return writes
}

// failures remembers the writes that failed. One that is reported is retried after its delay and
// not at every event of the owner: the status write that reports it is such an event, and if its
// message differs each time, as that of a webhook may, every try would cause the next.
//
// A denial by a policy, a quota or a webhook is reported at once. Any other error may pass, so it
// is returned to the loop until it has lasted.
type failures struct {
	byWrite *utilcache.Expiring // a failure by failedWrite
}

type failedWrite struct {
	owner      types.UID
	verb, name string
	fields     Fields
}

// failure is the last failure of a write, of several in a row.
type failure struct {
	// A failure does not count for other generations of the owner or the Deployment.
	owner, deployment int64

	count        int
	first, again time.Time
	denied       bool
	timedOut     bool
	blocker      *Blocker // nil: not reported yet
}

// begin forgets everything, because other processes may have written since.
func (f *failures) begin() { f.byWrite = utilcache.NewExpiring() }

func (o Owner) failedWrite(w write) failedWrite {
	return failedWrite{o.GetUID(), w.verb, w.deployment.Name, w.fields}
}

// get returns the last failure of the write, the zero value if there is none.
func (f failures) get(o Owner, w write) failure {
	known, _ := f.byWrite.Get(o.failedWrite(w))
	last, _ := known.(failure)
	if last.owner != o.GetGeneration() || last.deployment != w.deployment.Generation {
		return failure{}
	}
	return last
}

// denied reports whether the write was denied on its merits.
func (f failures) denied(o Owner, w write) bool { return f.get(o, w).denied }

// timedOut reports whether the last try of the write got no answer in time.
func (f failures) timedOut(o Owner, w write) bool { return f.get(o, w).timedOut }

// of returns the blocker to report and the remaining delay if the write must not be tried now.
func (f failures) of(o Owner, w write, now time.Time) (*Blocker, time.Duration) {
	last := f.get(o, w)
	if last.blocker == nil || !now.Before(last.again) {
		return nil, 0
	}
	return last.report(now)
}

// report returns the blocker and the delay after which there is another one, or another try.
func (f failure) report(now time.Time) (*Blocker, time.Duration) {
	again := f.again.Sub(now)
	if f.blocker.Reason != workloadv1alpha1.ReasonWriteFailing {
		return f.blocker, again
	}
	if left := f.first.Add(failedAfter).Sub(now); left > 0 {
		return f.blocker, min(again, left)
	}
	failed := *f.blocker
	failed.Reason = workloadv1alpha1.ReasonWriteFailed
	return &failed, again
}

// forget removes the failures of a write after it succeeded.
func (f failures) forget(o Owner, w write) {
	f.byWrite.Delete(o.failedWrite(w))
}

// note records that a write failed just now. It returns the blocker to report and the delay before
// the next try. The blocker is nil for an error that may pass and has not lasted yet.
func (f failures) note(o Owner, w write, err error, now time.Time) (*Blocker, time.Duration) {
	last := f.get(o, w)
	if last.count == 0 {
		last = failure{owner: o.GetGeneration(), deployment: w.deployment.Generation, first: now}
	}
	last.count++
	wait := min(firstRetry<<min(last.count-1, 20), soonRetry)
	last.timedOut = reconcile.IsWriteTimeout(err)
	denial := denialOf(err)
	last.denied = denial != nil
	if denial != nil {
		last.blocker, wait = o.denied(*denial, last.count)
	} else if last.count >= reportTries && now.Sub(last.first) >= failingAfter {
		last.blocker = &Blocker{
			Reason:  workloadv1alpha1.ReasonWriteFailing,
			Message: fmt.Sprintf("%s keeps failing: %s", w, causeOf(err)),
		}
	}
	last.again = now.Add(wait)
	ttl := wait + lastRetry // entries of deleted owners expire
	if last.blocker == nil {
		ttl = forgetAfter
	}
	f.byWrite.Set(o.failedWrite(w), last, ttl)
	if last.blocker == nil {
		return nil, 0
	}
	return last.report(now)
}

// denied returns the blocker for a denial, the count-th in a row, and the delay before the next
// try.
func (o Owner) denied(s metav1.Status, count int) (*Blocker, time.Duration) {
	wait := firstRetry << min(count-1, 20)
	switch {
	case isTerminating(s):
		return &Blocker{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("namespace %q is being deleted, and %s with it", o.GetNamespace(), o),
		}, lastRetry
	case isUnknownKind(s):
		return &Blocker{
			Reason:  workloadv1alpha1.ReasonProgressing,
			Message: fmt.Sprintf("the API server has not yet discovered kind %s, whose CRD was just installed: %s", o.Kind.Kind, s.Message),
		}, min(wait, unknownRetry)
	}
	longest := soonRetry
	if s.Code != http.StatusForbidden && !deniedByAdmission(s) {
		longest = lastRetry // the Deployment itself is invalid
	}
	return &Blocker{
		Reason: workloadv1alpha1.ReasonWriteDenied, Message: s.Message, Quotes: s.Code == http.StatusUnprocessableEntity,
	}, min(wait, longest)
}

// causeOf returns why a write failed, with a hint. It is the same each time as far as possible,
// since it goes into the status.
func causeOf(err error) string {
	status := apierrors.APIStatus(nil)
	switch {
	case reconcile.IsWriteTimeout(err):
		return "no answer within --write-timeout; an admission webhook for Deployments may hang"
	case !errors.As(err, &status):
		return "no answer from the API server: " + bounded(rootOf(err).Error())
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return "each try conflicts with a change by another client: " + status.Status().Message
	case apierrors.IsTooManyRequests(err):
		return "the API server limits the rate of requests: " + status.Status().Message
	default:
		return fmt.Sprintf("the API server answers %d: %s", status.Status().Code, status.Status().Message)
	}
}

// rootOf returns the innermost error, without what was being done and to which URL.
func rootOf(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
