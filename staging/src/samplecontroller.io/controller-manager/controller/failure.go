// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Reasons of a [Failure].
const (
	// ReasonWriteDenied: a quota, a policy or a webhook denies the write, or the object is invalid.
	ReasonWriteDenied = "WriteDenied"
	// ReasonWriteFailing: the write has failed at least three times in 10 s, for a cause that may pass.
	ReasonWriteFailing = "WriteFailing"
	// ReasonWriteFailed: the write has been failing for a minute.
	ReasonWriteFailed = "WriteFailed"
	// ReasonProgressing: the write fails for some seconds after the CRD of the owner was installed. After a
	// minute it counts as denied.
	ReasonProgressing = "Progressing"
)

const (
	// firstRetry is the delay before the next try of a write that keeps failing. Each further failure
	// doubles it up to soonRetry, because nothing enqueues the object when the cause goes away. The
	// limit is lastRetry for an object that is invalid, because only another object can be written.
	firstRetry = time.Second
	soonRetry  = 30 * time.Second
	lastRetry  = 5 * time.Minute

	// An error that may pass is reported after this many failures and this long, and as one that does
	// not pass after failedAfter.
	reportTries  = 3
	failingAfter = 10 * time.Second
	failedAfter  = time.Minute

	// discoveryTries are those of a write that waits for the discovery of a CRD, one each second.
	discoveryTries = 60
)

// Failure is the error of a write that keeps failing. [Owned.Ensure], [Owned.Delete] and the methods of
// [Request] that write return it at once for a write that the API server denies on its merits, and for
// any other error once it has lasted. Until its next try is due, they return it without sending
// anything, so that the status write which reports it does not cause another try. A write of other
// contents or to another generation is tried within a second, all after a change of the owner's generation.
//
// A Warning Event with the reason reports each failure, and the log. For the status see
// [Builder.Failing]. Missing permissions are no Failures: they make the controller Degraded.
//
// A Failure about a Field is not returned as an error: see [Owned.Contest].
//
// A Failure is read-only. It wraps the last error of the API server. Find it with [errors.AsType].
type Failure struct {
	// Reason is ReasonWriteDenied, ReasonWriteFailing, ReasonWriteFailed, ReasonProgressing,
	// ReasonDeletionsStopped, ReasonContested or ReasonRewrittenByAdmission.
	Reason string
	// Message says which write fails and why, with the usual cause if that helps. It is at most 1000
	// bytes long.
	Message string
	// Verb is create, patch or delete. Resource is such as services or foos/status.example.com.
	Verb, Resource string
	// Object is the name of the object that cannot be written.
	Object cache.ObjectName
	// Field is the field of Object that the last two reasons are about, as a JSON pointer (RFC 6901), such as
	// /spec/replicas. FieldManager is the other one that sets it, "" if it is not known: see [ManagedFields].
	Field, FieldManager string
	// Retry is the least time between two writes of Field.
	Retry time.Duration
	// Since is the time of the first failure in a row, in whole seconds. As LastTransitionTime of a
	// condition it is the same each time.
	Since metav1.Time
	// Quotes is whether Message may quote contents of the object. Do not show such a message to
	// people who may not read the object.
	Quotes bool

	err error
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns the error of the last try.
func (f *Failure) Unwrap() error { return f.err }

// Condition returns the condition that is True while the write fails, by the convention of kstatus:
// Stalled if a user has to do something, else Reconciling.
func (f *Failure) Condition() string {
	if f.Reason == ReasonWriteFailing || f.Reason == ReasonProgressing {
		return "Reconciling"
	}
	return "Stalled"
}

// log writes a line about the failure.
func (f *Failure) log(logger klog.Logger) {
	logger = klog.LoggerWithValues(logger, "reason", f.Reason, "resource", f.Resource, "object", f.Object)
	switch {
	case f.Reason == ReasonDeletionsStopped: // there is one line for all objects
	case f.Field != "":
		logger.Info("Field does not stay as declared, correcting it slowly", "field", f.Field, "fieldManager", f.FieldManager)
	default:
		logger.Error(f.err, "Write keeps failing, retrying with backoff", "verb", f.Verb)
	}
}

// failing is a write that has failed, maybe several times in a row.
type failing struct {
	contents    uint64 // hash of the contents of the write
	count       int
	first, last time.Time
	again       time.Time // the next try
	timedOut    bool
	wanted      bool     // the present call wanted the write
	current     bool     // the last call that ended without another error did
	isIdle      bool     // there is nothing to write now
	failure     *Failure // nil: not reported yet
	ending      error    // the namespace of the object is being deleted
	reported    []string // the reasons of Events
}

// now returns the failure with its reason at the given time.
func (f *failing) now(now time.Time) *Failure {
	if f.failure == nil || f.failure.Reason != ReasonWriteFailing || now.Sub(f.first) < failedAfter {
		return f.failure
	}
	failed := *f.failure
	failed.Reason = ReasonWriteFailed
	return &failed
}

// holdsBack reports whether the write is not to be tried now. Other contents than the last time are tried
// after firstRetry. They may differ each time, so they are not tried at once.
func (f *failing) holdsBack(contents uint64, now time.Time) bool {
	if other := f.last.Add(firstRetry); f.contents != contents && other.Before(f.again) {
		f.again = other
	}
	f.contents = contents
	return now.Before(f.again)
}

// due returns the delay after which there is something to do: another try, or another report. If the try
// was due but the present call has not made it, that is after firstRetry.
func (f *failing) due(now time.Time) time.Duration {
	again := f.again.Sub(now)
	if again <= 0 {
		again = firstRetry
	}
	if left := f.first.Add(failedAfter).Sub(now); left > 0 && f.failure != nil && f.failure.Reason == ReasonWriteFailing {
		again = min(again, left)
	}
	return again
}

// note records that a write failed just now.
func (f *failing) note(w write, err error, contents uint64, now time.Time) {
	if f.count == 0 {
		f.first = now
	}
	f.count++
	f.contents, f.last, f.timedOut = contents, now, isTimeout(err)
	wait := retryDelay(f.count, soonRetry)
	answer, denied := denialOf(err)
	if denied {
		f.failure, wait = denialFor(w, answer, f.count)
	} else if f.failure != nil || f.count >= reportTries && now.Sub(f.first) >= failingAfter {
		message := fmt.Sprintf("%s keeps failing: %s", w, causeOf(err, w.resource))
		f.failure = &Failure{Reason: ReasonWriteFailing, Message: message}
	}
	if f.failure != nil {
		f.failure.err, f.failure.Since = err, metav1.NewTime(f.first).Rfc3339Copy()
		f.failure.Verb, f.failure.Resource, f.failure.Object = w.verb, w.resource, w.object
		f.failure.Message = truncate.To(maxMessage, f.failure.Message)
	}
	f.again = now.Add(wait)
}

// denialFor returns the failure for a denial, the count-th in a row, and the delay before the next try.
func denialFor(w write, answer metav1.Status, count int) (*Failure, time.Duration) {
	if isUnknownKind(answer) && count <= discoveryTries {
		message := fmt.Sprintf("%s: the API server has not yet discovered the CRD of its owner: %s", w, answer.Message)
		return &Failure{Reason: ReasonProgressing, Message: message}, firstRetry
	}
	longest, hint := soonRetry, w.hintAboutCRD(answer)
	if hint == "" && answer.Code != http.StatusForbidden && !deniedByAdmission(answer) {
		longest = lastRetry // the object itself is invalid
	}
	message := fmt.Sprintf("%s was denied: %s%s", w, truncate.To(maxMessage-200, answer.Message), hint)
	return &Failure{
		Reason: ReasonWriteDenied, Message: message,
		Quotes: answer.Code == http.StatusUnprocessableEntity && !hasUnknownField(answer),
	}, retryDelay(count, longest)
}

// retryDelay returns the delay after the count-th failure in a row.
func retryDelay(count int, longest time.Duration) time.Duration {
	return min(firstRetry<<min(count-1, 20), longest)
}
