// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Reasons of a [Failure] about one field of an owned object.
const (
	// ReasonContested: another writer keeps setting the field to another value.
	ReasonContested = "Contested"
	// ReasonRewrittenByAdmission: a webhook, a policy or a conversion changes the value in each write.
	ReasonRewrittenByAdmission = "RewrittenByAdmission"
)

// DescribeContests sets the function that returns the reason and the message of a [Failure] about a field of an
// owned object. It gets the library's. Without it, they are general: the library does not know what in the spec of
// the owner determines the field. describe must not change its arguments.
func (o *Owned[T, P]) DescribeContests(describe func(owner P, owned T, f Failure) (reason, message string)) {
	o.owner.declares("DescribeContests", describe != nil)
	o.describe = describe
}

// Contest returns the [Failure] about a field of the owned object with that name, as Ensure or Patch has last
// found it for the reconciled object, or nil. If there are several, it returns the one that has lasted for the
// longest time.
func (o *Owned[T, P]) Contest(r *Request[P], name string) *Failure {
	key, resource := o.key(r, name), o.resource.inMetrics()
	for _, f := range r.contests() {
		if f.Object == key && f.Resource == resource {
			return f
		}
	}
	return nil
}

// contests returns the failures about fields, as the present call or, if the request only explains, the last one
// has found them.
func (r *Request[T]) contests() []*Failure {
	if r.failures != nil {
		return r.failures.contests()
	}
	return r.builder.failures.contests(r.key, r.object.GetUID(), r.object.GetGeneration())
}

// patch writes the difference between the cached object and the wanted one, without fields that are held.
func (o *Owned[T, P]) patch(ctx context.Context, r *Request[P], cached, wanted T) (none T, _ error) {
	if err := o.keepsStatus(cached, wanted, cache.MetaObjectToName(cached)); err != nil {
		return none, err
	}
	var operations []operation
	if !same(cached, wanted) {
		var err error
		if operations, err = o.resource.difference(cached, wanted); err != nil {
			return none, err
		}
	}
	changes := fieldChanges(operations)
	found := o.contests.of(cached.GetUID()).judge(r.object.GetGeneration(), changes, time.Now())
	sent := without(operations, found)
	if len(sent) == 0 {
		o.tell(r, cached, found)
		if len(operations) == 0 { // also for times that differ by less than a second
			o.resource.skip()
			return wanted, nil
		}
		return cached.DeepCopyObject().(T), nil
	}
	patched, err := o.resource.apply(ctx, o.sending(r, cached), cached, sent)
	if err != nil {
		o.tell(r, cached, found)
		return none, err
	}
	o.owner.consistency.WroteAt(r.key, o.resource.informer.GetStore(), patched.GetResourceVersion())
	return patched, o.noteChanges(r, cached, patched, changes, found)
}

// sending returns the function that sends a patch of the cached object.
func (o *Owned[T, P]) sending(r *Request[P], cached T) tryFunc {
	return func(ctx context.Context, w sentWrite) error {
		send := w.send
		w.send = func(ctx context.Context) error { return o.failed(r, cached, send(ctx)) }
		if !o.owner.confirmations.has(r.key, r.object.GetUID()) {
			w.confirm = func(ctx context.Context) error { return r.isStale(o.owner.confirm(ctx, r)) }
		}
		return r.try(ctx, w)
	}
}

// noteChanges notes what has become of changes after the patch, except those of held fields.
func (o *Owned[T, P]) noteChanges(r *Request[P], cached, patched T, changes []change, found []contest) error {
	after, err := documentOf(patched)
	if err != nil {
		return fmt.Errorf("encoding the patched %s %s: %w", o.resource.kind.Kind, cache.MetaObjectToName(cached), err)
	}
	histories := maps.Clone(o.contests.of(cached.GetUID()))
	if histories == nil {
		histories = map[string]history{}
	}
	generation, now, done := r.object.GetGeneration(), time.Now(), isDone(r.object)
	before := sync.OnceValue(func() map[string]any {
		document, _ := documentOf(cached) // it was encoded for the patch
		return document
	})
	var left []change // after the patch
	for _, c := range changes {
		if isHeld(found, c.field) {
			left = append(left, c)
			continue
		}
		stored, unchanged := c.result(after)
		if unchanged || stored == 0 && patched.GetResourceVersion() == cached.GetResourceVersion() {
			continue // the API server has set the field, for example to a default, or dropped it
		}
		histories[c.field] = histories[c.field].after(c, stored, generation, done, func() string {
			return managerOf(cached.GetManagedFields(), o.resource.manager, before, c.field)
		}, now)
		if stored != 0 {
			c.before = stored
			left = append(left, c)
		}
	}
	if !o.resource.dryRun { // it stores nothing that another writer could change later
		o.contests.keep(cached.GetUID(), histories, now)
	}
	o.tell(r, patched, histories.judge(generation, left, now))
	return nil
}

// isDone reports whether a status says that the spec of the object has been carried out.
func isDone(object metav1.Object) bool {
	index := inStatus(reflect.TypeOf(object).Elem(), "ObservedGeneration", reflect.TypeFor[int64]())
	return index != nil && reflect.ValueOf(object).Elem().FieldByIndex(index).Int() >= object.GetGeneration()
}

// tell records as failures which fields of an owned object are contested now. What an earlier write of the same
// call has found stays: this one may be about other fields.
func (o *Owned[T, P]) tell(r *Request[P], owned T, found []contest) {
	key := cache.MetaObjectToName(owned)
	for w, known := range r.failures.byWrite {
		if w.contest && !known.wanted && w.object == key && w.resource == o.resource.inMetrics() &&
			!slices.ContainsFunc(found, func(c contest) bool { return c.field == w.fields }) {
			delete(r.failures.byWrite, w)
		}
	}
	for _, c := range found {
		w := o.resource.writing("patch", key, nil).write
		w.fields, w.contest = c.field, true
		failure := &Failure{
			Verb: w.verb, Resource: w.resource, Object: key, Since: metav1.NewTime(c.since).Rfc3339Copy(), Field: c.field,
			FieldManager: c.manager, Retry: contestPeriod,
		}
		if c.isRewritten {
			failure.Retry = rewriteRetry
		}
		failure.Reason, failure.Message = o.describeContest(r, owned, c, *failure)
		failure.Message = truncate.To(maxMessage, failure.Message)
		r.failures.noteContest(w, failure, c)
	}
}

// describeContest returns the reason and the message of the failure.
func (o *Owned[T, P]) describeContest(r *Request[P], owned T, c contest, f Failure) (reason, message string) {
	owner := fmt.Sprintf("%s %s", o.owner.resource.kind.Kind, r.key)
	field := fmt.Sprintf("%s of %s %s", c.field, o.resource.kind.Kind, f.Object)
	if f.Reason = ReasonContested; c.isRewritten {
		f.Reason = ReasonRewrittenByAdmission
		f.Message = fmt.Sprintf("%s is not kept as %s declares it: admission changes it: declare the value that it has, or "+
			"exempt the %s from the webhook or policy; it is tried again every %v", field, owner, o.resource.kind.Kind, f.Retry)
	} else {
		other := "another writer, shown by kubectl get --show-managed-fields"
		if c.manager != "" {
			other = fmt.Sprintf("field manager %q", c.manager)
		}
		f.Message = fmt.Sprintf("%s is also set by %s: stop the other writer, or do not declare the field in %s; "+
			"until then it is corrected at most every %v", field, other, owner, f.Retry)
	}
	if o.describe == nil {
		return f.Reason, f.Message
	}
	return o.describe(r.object, owned, f)
}

// contests returns the contests that the last call for an object has met.
func (f *failureStore) contests(key cache.ObjectName, uid types.UID, generation int64) []*Failure {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if of := f.byKey[key]; of != nil && of.uid == uid && of.generation == generation {
		return of.contested
	}
	return nil
}

// noteContest records a field that is contested now.
func (f *failuresOf) noteContest(w write, failure *Failure, c contest) {
	known := f.byWrite[w]
	if known == nil {
		known = &failing{}
		f.byWrite[w] = known
	}
	if known.wanted && !known.isIdle && !c.isHeld {
		return // an earlier write of this call has found that it is held
	}
	known.first, known.last, known.again = c.since, time.Now(), c.again
	known.wanted, known.current, known.failure, known.isIdle = true, true, failure, !c.isHeld
}

// contests returns the failures about fields that the present call has met, those first that have lasted for longest.
func (f *failuresOf) contests() (all []*Failure) {
	for w, known := range f.byWrite {
		if w.contest && known.wanted {
			all = append(all, known.failure)
		}
	}
	slices.SortFunc(all, func(a, b *Failure) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), strings.Compare(a.Field, b.Field))
	})
	return all
}
