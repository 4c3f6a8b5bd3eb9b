// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/tolerant"
)

// Finalize makes the controller clean up before an object is gone, for example something outside of
// the cluster. Each object gets the finalizer before it is first reconciled. When the object is being
// deleted, finalize is called instead of the function given to [Builder.Reconcile], until it returns
// nil without a call of [Request.RequeueAfter]. Then the finalizer is removed. Errors have the same
// effect as there.
//
// After a crash or a change of leader, finalize is called again, so it must succeed if there is
// nothing left to clean up. A new leader first checks with the API server that the object still exists,
// so it does not clean up for a later object of that name. While the controller is disabled, objects
// with the finalizer cannot be deleted. finalizer is a name with the domain of the program, such as
// "example.com/vault".
func (b *Builder[T]) Finalize(finalizer string, finalize func(context.Context, *Request[T]) error) {
	b.declares("Finalize", finalize != nil)
	switch {
	case len(validation.IsQualifiedName(finalizer)) > 0 || !slices.Contains([]byte(finalizer), '/'):
		b.fail(misuse.Errorf("%s: the finalizer %q has no domain: use a name such as \"example.com/%s\"", b.context.name, finalizer, b.context.name))
	case b.finalize != nil:
		b.fail(misuse.Errorf("%s: a kind can have one finalizer, but Finalize is called for %q and %q", b.context.name, b.finalizer, finalizer))
	case b.resource != nil && !b.resource.selector.Empty():
		b.fail(misuse.Errorf("%s: Finalize cannot be used with the selector %q: an object whose labels change would keep the finalizer", b.context.name, b.resource.selector))
	}
	b.finalizer, b.finalize = finalizer, finalize
	if b.resource != nil {
		b.context.declare(b.resource.name.GroupResource(), "patch")
	}
}

// OnDeletion makes the controller reconcile objects that are being deleted, too. By default it does
// not: the garbage collector deletes their dependents. [Owned.Ensure] fails for such an object.
func (b *Builder[T]) OnDeletion() {
	b.declares("OnDeletion", true)
	b.onDeletion = true
}

// ignores reports whether the function is not called for an object, because it is being deleted.
func (b *Builder[T]) ignores(object T) bool {
	return object.GetDeletionTimestamp() != nil && !b.finalizes(object) &&
		(!b.onDeletion || tolerant.DecodeError(object) != nil) // which nobody needs to fix
}

// reconciles reports whether an object exists, and the function is called for it.
func (b *Builder[T]) reconciles(key cache.ObjectName) bool {
	object, found, err := b.resource.cached(key)
	return err != nil || found && !b.ignores(object)
}

// finalizes reports whether the object has the finalizer of the controller.
func (b *Builder[T]) finalizes(object T) bool {
	return b.finalize != nil && slices.Contains(object.GetFinalizers(), b.finalizer)
}

// unhandled returns a finalizer that was added to an object, but that the controller would not remove.
func (b *Builder[T]) unhandled(before, after T) string {
	if b.onDeletion {
		return ""
	}
	for _, f := range after.GetFinalizers() {
		if f != b.finalizer && !slices.Contains(before.GetFinalizers(), f) {
			return f
		}
	}
	return ""
}

// addFinalizer adds the finalizer. The change enqueues the object.
func (b *Builder[T]) addFinalizer(ctx context.Context, r *Request[T]) error {
	object := r.object.DeepCopyObject().(T)
	object.SetFinalizers(append(object.GetFinalizers(), b.finalizer))
	return r.Patch(ctx, object)
}

// cleanUp finalizes an object and removes the finalizer.
func (b *Builder[T]) cleanUp(ctx context.Context, r *Request[T]) error {
	if b.context.DryRun() {
		plan.Finalize(ctx, plan.Change{Resource: b.resource.inMetrics(), Namespace: r.key.Namespace, Name: r.key.Name,
			Finalizer: b.finalizer})
		return nil
	}
	// The predecessor may have cleaned up, and the name may be in use again.
	if !b.confirmations.has(r.key, r.object.GetUID()) {
		if err := b.confirm(ctx, r); err != nil {
			return err
		}
	}
	if err := b.context.leading(); err != nil {
		return err // requests to other systems do not pass the gate
	}
	r.called = true
	if err := b.finalize(ctx, r); err != nil || r.asked {
		return err
	}
	object := r.object.DeepCopyObject().(T)
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == b.finalizer }))
	err := r.Patch(ctx, object)
	if isGone(err) {
		return nil
	}
	return err
}
