// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/plan"
)

// forgetAfter is how long after a try was due the next failure counts as the first. It exceeds the delay
// of the loop between two tries that are not reported.
const forgetAfter = 2 * time.Minute

// failureStore remembers the writes that fail, by the object that is reconciled. It is safe for concurrent
// use for different objects.
type failureStore struct {
	mutex sync.Mutex
	byKey map[cache.ObjectName]*failuresOf
}

// failuresOf are the failing writes for one object. Failures for another generation do not count.
type failuresOf struct {
	uid        types.UID
	generation int64
	byWrite    map[write]*failing
	// explained is what the last call has left to do about them, and contested its contests; guarded by the mutex
	// of the store.
	explained string
	contested []*Failure
}

// begin begins a term: other processes may have written since.
func (f *failureStore) begin() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.byKey = nil
}

// start starts a call for an object, and returns its failures.
func (f *failureStore) start(key cache.ObjectName, uid types.UID, generation int64) *failuresOf {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	of := f.byKey[key]
	if of == nil || of.uid != uid || of.generation != generation {
		return &failuresOf{uid: uid, generation: generation, byWrite: map[write]*failing{}}
	}
	for w, known := range of.byWrite {
		known.wanted = false
		if time.Since(known.again) > forgetAfter {
			delete(of.byWrite, w)
		}
	}
	return of
}

// end ends a call, and keeps the failures.
func (f *failureStore) end(key cache.ObjectName, of *failuresOf) {
	explained, contested := of.explain(time.Now()), of.contests()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	of.explained, of.contested = explained, contested
	if len(of.byWrite) == 0 {
		delete(f.byKey, key)
		return
	}
	if f.byKey == nil {
		f.byKey = map[cache.ObjectName]*failuresOf{}
	}
	f.byKey[key] = of
}

// explain returns which write is to be tried again, when and why; "" if there is none.
func (f *failuresOf) explain(now time.Time) string {
	wanted := f.reported(func(_ write, known *failing) bool { return known.wanted && !known.isIdle })
	if len(wanted) == 0 {
		return ""
	}
	failure, again := wanted[0].now(now), wanted[0].again
	why := failure.Message
	if failure.Quotes {
		why = "see its Event for the reason"
	}
	return fmt.Sprintf("%s %s %s again at %s: %s", failure.Verb, failure.Resource, failure.Object, again.UTC().Format(time.RFC3339), why)
}

// explain returns the next try of a failing write for an object, "" if no write fails.
func (f *failureStore) explain(key cache.ObjectName, uid types.UID, generation int64) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if of := f.byKey[key]; of != nil && of.uid == uid && of.generation == generation {
		return of.explained
	}
	return ""
}

// heldBack returns the error of a write that is not to be tried now, a [Failure] if it is to be reported.
func (f *failuresOf) heldBack(w sentWrite, now time.Time) error {
	known := f.byWrite[w.write]
	switch {
	case known == nil:
		return nil
	case known.ending != nil && now.Before(known.again):
		known.wanted = true
		return known.ending
	case known.failure == nil:
		return nil
	}
	known.wanted, known.current = true, true
	if !known.holdsBack(w.hash(), now) {
		return nil
	}
	return known.now(now)
}

// note records that a write failed, and returns the failure if it is to be reported.
func (f *failuresOf) note(w sentWrite, err error, now time.Time) *Failure {
	known := f.byWrite[w.write]
	if known == nil {
		known = &failing{}
		f.byWrite[w.write] = known
	}
	known.wanted, known.current = true, true
	known.note(w.write, err, w.hash(), now)
	return known.now(now)
}

// endIfUnwanted ends the failure of a write if a [UserError] shows that it is not to be made.
func (f *failuresOf) endIfUnwanted(w write, err error) bool {
	unwanted := partsOf(err).users != nil
	if unwanted {
		delete(f.byWrite, w)
	}
	return unwanted
}

// forgetUnwanted makes the failures current that the present call has met. Others that are not reported
// yet end, so that the next one is the first in a row; those for an object that is gone end, too.
func (f *failuresOf) forgetUnwanted() {
	for w, known := range f.byWrite {
		known.current = known.wanted
		if !known.wanted && (known.failure == nil || f.uid == "") {
			delete(f.byWrite, w)
		}
	}
}

// reported returns the failing writes that are reported, those that need a user first, and contests last: their
// other fields are written.
func (f *failuresOf) reported(ok func(write, *failing) bool) []*failing {
	var all []*failing
	for w, known := range f.byWrite {
		if known.failure != nil && ok(w, known) {
			all = append(all, known)
		}
	}
	now := time.Now()
	slices.SortFunc(all, func(a, b *failing) int {
		x, y := a.now(now), b.now(now)
		return cmp.Or(cmp.Compare(min(len(x.Field), 1), min(len(y.Field), 1)), -cmp.Compare(x.Condition(), y.Condition()),
			x.Since.Compare(y.Since.Time), cmp.Compare(x.Message, y.Message))
	})
	return all
}

// inStatus returns the failure for the status. A failing write of the status itself is not for it.
func (f *failuresOf) inStatus() *Failure {
	for _, known := range f.reported(func(w write, known *failing) bool { return known.current && !(w.own && w.status) }) {
		return known.now(time.Now())
	}
	return nil
}

// due returns when there is something to do about the writes that the call wanted; 0 means never.
func (f *failuresOf) due() (after time.Duration) {
	for _, known := range f.reported(func(_ write, known *failing) bool { return known.wanted }) {
		after = sooner(after, known.due(time.Now()))
	}
	return after
}

// Failing sets what the status of an object says while a write for it keeps failing. set changes the
// Status of object; f is nil if no write fails. If several writes fail, f is one that
// needs a user, else the one that has been failing for the longest time. A failing write of the status
// itself is reported only by its Event.
//
// The library calls set on each status that [Request.UpdateStatus] is about to write, and after each call
// of the controller's function, and then writes the status if it has changed. So set must return the same
// for the same failure, and must remove for nil what it has added:
//
//	backups.Failing(func(b *Backup, f *controller.Failure) {
//		if f == nil || f.Condition() != "Stalled" {
//			meta.RemoveStatusCondition(&b.Status.Conditions, "Stalled")
//			return
//		}
//		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
//			Type: "Stalled", Status: "True", Reason: f.Reason, Message: f.Message, LastTransitionTime: f.Since,
//		})
//	})
//
// Failing declares the permission to write the status.
func (b *Builder[T]) Failing(set func(object T, f *Failure)) {
	b.declares("Failing", set != nil)
	if b.resource == nil {
		return // For has failed
	}
	if !statusOf(newOf[T]()).IsValid() {
		b.fail(misuse.Errorf("%s: Failing changes the field Status, which %T does not have", b.context.name, newOf[T]()))
		return
	}
	if b.failing != nil {
		b.fail(misuse.Errorf("%s: Failing was called twice for %s: call it once", b.context.name, b.resource.kind.Kind))
	}
	b.failing = set
	b.context.declare(subresource(b.resource.name.GroupResource(), "status"), "patch")
}

// reportFailures records an Event and a log line for each new reason of a failure, and writes the
// status. err is the error of the controller's function.
func (b *Builder[T]) reportFailures(ctx context.Context, r *Request[T], err error) error {
	p := partsOf(err)
	if r.decided = r.called && !r.refused && !p.other && !p.ending && p.external == nil; r.decided {
		r.failures.forgetUnwanted()
	}
	for _, statusErr := range [...]error{b.writeFailure(ctx, r, err), b.resume(ctx, r)} {
		if statusErr != nil {
			err = errors.Join(err, statusErr)
		}
	}
	for _, known := range r.failures.reported(func(_ write, known *failing) bool { return known.wanted }) {
		failure := known.now(time.Now())
		if slices.Contains(known.reported, failure.Reason) {
			continue // causes may alternate
		}
		known.reported = append(known.reported, failure.Reason)
		failure.log(klog.FromContext(ctx))
		if r.found && failure.Reason != ReasonProgressing {
			b.recorder.Event(r.object, corev1.EventTypeWarning, failure.Reason, failure.Message)
		}
	}
	return err
}

// endCall keeps what the call has found out about failing writes.
func (b *Builder[T]) endCall(ctx context.Context, r *Request[T]) {
	b.failures.end(r.key, r.failures)
	if r.decided && !r.failures.waitsForDeletions() {
		b.context.budget.wantsNone(ctx, r.waiter())
	}
}

// writeFailure writes to the status which write fails. If err is another error, what the status says
// about earlier writes still holds.
func (b *Builder[T]) writeFailure(ctx context.Context, r *Request[T], err error) error {
	if b.failing == nil || !r.found || r.stale != nil || r.pausing {
		return nil
	}
	failure := r.failures.inStatus()
	if failure == nil && (err != nil || r.object.GetDeletionTimestamp() != nil) {
		return nil
	}
	object := r.object.DeepCopyObject().(T)
	b.failing(object, failure)
	if same(statusOf(object).Interface(), statusOf(r.object).Interface()) {
		plan.ComparedStatus(ctx)
		return nil
	}
	return r.UpdateStatus(ctx, object)
}
