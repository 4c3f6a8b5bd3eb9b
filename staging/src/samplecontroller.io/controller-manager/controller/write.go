// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// write is one write of an object. Patches of different fields are different writes, so that the one
// that succeeds does not hide the other.
type write struct {
	verb, kind, resource string
	object               cache.ObjectName
	custom               bool   // the kind has a CRD
	own                  bool   // of the reconciled object itself
	status               bool   // of its status
	fields               string // that a patch sets
	contest              bool   // it stands for a field that is contested; it is never sent
}

func (w write) String() string {
	doing := map[string]string{"create": "creating", "patch": "patching", "delete": "deleting"}[w.verb]
	if w.status {
		doing = "writing the status of"
	}
	return fmt.Sprintf("%s %s %s", doing, w.kind, w.object)
}

// isMissingPermission reports whether the authorizer denied the write, whatever the object.
func (w write) isMissingPermission(err error) bool {
	return writes.IsMissingPermission(err, writes.Write{Verb: w.verb, Resource: w.resource}, w.object.Name)
}

// sentWrite is one write and how it is sent.
type sentWrite struct {
	write
	contents any       // is encoded as JSON to compare it with that of the last try
	uid      types.UID // of the object, for a deletion
	// confirm is called before the write is sent; its error is not one of the write. Optional.
	confirm func(context.Context) error
	send    func(context.Context) error
}

// tryFunc is [Request.try].
type tryFunc func(context.Context, sentWrite) error

// try sends a write, unless it has failed and its next try is not due, or the object is paused. It returns a
// [Failure] if the error is to be reported. All writes for an object pass it.
func (r *Request[T]) try(ctx context.Context, w sentWrite) error {
	if err := r.isPausedNow(); err != nil {
		return err
	}
	f := r.failures
	if !r.builder.resource.dryRun { // a plan has the writes of one call, so each call sends all of them
		if err := f.heldBack(w, time.Now()); err != nil {
			return err
		}
	}
	end, err := r.beginDeletion(ctx, w)
	if err != nil {
		return err
	}
	result := errNotSent
	defer func() { end(result) }()
	if w.confirm != nil {
		if err := w.confirm(ctx); err != nil {
			f.endIfUnwanted(w.write, err)
			return err
		}
	}
	if err := r.confirmNamespace(ctx, w.write); err != nil {
		return err
	}
	if known := f.byWrite[w.write]; known != nil && known.timedOut {
		ctx = reconcile.WithLongWrite(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // another write has used up the time of the sync
	}
	stale := r.stale
	err = w.send(ctx)
	if result = err; w.verb == "delete" && isGone(err) {
		err = nil
	}
	if err != nil && ctx.Err() != nil {
		err = &noAnswer{err}
	}
	switch {
	case isTerminating(err) && r.key.Namespace != "": // the owner goes with its namespace
		f.byWrite[w.write] = &failing{ending: err, wanted: true, again: time.Now().Add(lastRetry)}
		return err
	case err == nil, w.isMissingPermission(err), isTerminating(err), w.own && isGone(err):
		delete(f.byWrite, w.write) // it did not fail because of its contents, or is not wanted any more
		return err
	case errors.Is(err, leadership.ErrNotLeading), errors.Is(err, errSwitchedOff), f.endIfUnwanted(w.write, err):
		return err // the write did not fail
	}
	if failure := f.note(w, err, time.Now()); failure != nil {
		r.stale = stale // the status can be written: it says that the write fails
		return failure
	}
	return err
}

// noAnswer is the error of a write that got no answer before the timeout of the sync.
type noAnswer struct{ error }

func (e *noAnswer) Unwrap() error { return e.error }

// isTimeout reports whether a write got no answer in time.
func isTimeout(err error) bool {
	_, late := errors.AsType[*noAnswer](err)
	return late || reconcile.IsWriteTimeout(err) || errors.Is(err, context.DeadlineExceeded)
}

var contentsSeed = maphash.MakeSeed()

// hash returns a hash of the contents.
func (w sentWrite) hash() uint64 {
	document, err := json.Marshal(w.contents)
	if err != nil {
		return 0
	}
	return maphash.Bytes(contentsSeed, document)
}

// versionPath is the path of the resourceVersion.
const versionPath = "/metadata/resourceVersion"

// writing returns the write of an object, which is to be sent with [Request.try].
func (r *resource[T]) writing(verb string, object cache.ObjectName, contents any, subresources ...string) sentWrite {
	name := r.inMetrics(subresources...)
	w := write{verb: verb, kind: r.kind.Kind, resource: name, object: object, status: len(subresources) > 0}
	w.custom = r.sparse
	return sentWrite{write: w, contents: contents}
}

// patch writes the difference between before, the cached object, and after. It fails with a
// conflict if the stored object is not as in the cache: if it has another resourceVersion, or if the
// patch does not apply, for example because an element of a list is not where it is in the cache. It
// passes the write to try, which may send it.
func (r *resource[T]) patch(ctx context.Context, try tryFunc, before, after T, subresources ...string) (T, error) {
	operations, err := r.difference(before, after)
	if err != nil {
		return before, err
	}
	if len(operations) == 0 { // such as times that differ by less than a second
		r.skip(subresources...)
		return before, nil
	}
	return r.apply(ctx, try, before, operations, subresources...)
}

// apply passes a patch of the cached object to try, which may send it.
func (r *resource[T]) apply(ctx context.Context, try tryFunc, before T, operations []operation,
	subresources ...string) (patched T, err error) {
	w := r.writing("patch", cache.MetaObjectToName(before), []any{before.GetGeneration(), operations}, subresources...)
	w.fields = strings.Join(fieldsOf(operations), " ")
	w.send = func(ctx context.Context) error {
		patched, err = r.sendPatch(ctx, before, operations, subresources)
		return err
	}
	patched = before
	err = try(ctx, w)
	return patched, err
}

// sendPatch sends a patch of before. The API server would drop fields that it does not know, and only warn.
// A patch has no other fields than those that the controller changes, so it can be strict.
func (r *resource[T]) sendPatch(ctx context.Context, before T, operations []operation, subresources []string) (T,
	error) {
	name := cache.MetaObjectToName(before)
	operations = append(slices.Clip(operations), operation{Op: "replace", Path: versionPath, Value: before.GetResourceVersion()})
	patch, err := json.Marshal(operations)
	if err != nil {
		return before, fmt.Errorf("comparing %s %s: %w", r.kind.Kind, name, err)
	}
	patched, err := r.client(name.Namespace).Patch(ctx, name.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: r.manager, FieldValidation: metav1.FieldValidationStrict}, subresources...)
	if doesNotApply(err) {
		err = r.late(name, errors.New("the stored object is not as in the cache"))
	}
	if err != nil {
		return before, fmt.Errorf("patching %s %s: %w", r.kind.Kind, name, withoutObject(err))
	}
	// An object in deletion is gone with its last finalizer, and keeps its version.
	isSame := patched.GetResourceVersion() == before.GetResourceVersion()
	if isSame && !r.dryRun && before.GetDeletionTimestamp() == nil {
		r.changedNothing(ctx, before, operations, subresources)
		return patched, nil
	}
	klog.FromContext(ctx).V(2).Info("Patched object", "resource", r.inMetrics(subresources...), "object", klog.KObj(before))
	return patched, nil
}

// delete deletes an object, if it is still the cached version. It returns the error of a missing object.
func (r *resource[T]) delete(ctx context.Context, cached T) error {
	name, uid, version := cache.MetaObjectToName(cached), cached.GetUID(), cached.GetResourceVersion()
	err := r.client(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", r.kind.Kind, name, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted object", "resource", r.inMetrics(), "object", klog.KObj(cached))
	return nil
}

// difference returns the JSON patch from before to after. An update would delete fields that the
// cache or this version of the type lacks, a merge patch those in elements of lists. The merge
// keys of strategic merge patches are not unique: those of ports lack the protocol.
func (r *resource[T]) difference(before, after T) ([]operation, error) {
	name := cache.MetaObjectToName(before)
	before, after = differing(before, after)
	from, err := documentOf(before)
	to, toErr := documentOf(after)
	if err := errors.Join(err, toErr); err != nil {
		return nil, fmt.Errorf("comparing %s %s: %w", r.kind.Kind, name, err)
	}
	d := differ{sparse: r.sparse}
	d.members("", from, to)
	d.zeros(from, to)
	return d.ops, nil
}

// stored returns the object that a patch to wanted is made from in a dry run, in which the cached object is still
// stored.
func stored[T Object](cached, wanted T, isStatus bool) T {
	object := merged(cached, wanted, isStatus)
	object.SetResourceVersion(cached.GetResourceVersion())
	return object
}

// merged returns a copy of wanted with the status, or with all else, of a written object. The answer to a dry run lacks
// what earlier writes of the call have changed.
func merged[T Object](written, wanted T, isStatus bool) T {
	object, status := written, wanted
	if isStatus {
		object, status = wanted, written
	}
	object = object.DeepCopyObject().(T)
	if to := statusOf(object); to.IsValid() {
		to.Set(statusOf(status))
	}
	return object
}

// fieldsOf returns the fields that a JSON patch sets.
func fieldsOf(operations []operation) (paths []string) {
	for _, o := range operations {
		if o.Op != "test" && o.Path != versionPath {
			paths = append(paths, o.Path)
		}
	}
	return paths
}
