// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"
)

// MadeBy names field managers, beside the name of the controller, whose objects [Owned.Delete] may delete:
// those of a program that the controller replaces, or a former name of the controller. It is for [Owns].
func MadeBy(managers ...string) Option {
	return func(o *kindOptions) { o.madeBy = append(o.madeBy, managers...) }
}

// Delete deletes the object with that name if the reconciled object owns it. It first checks with the
// API server that the reconciled object is as in the cache, or, if the cache lacks it, that it is gone.
// It does nothing if there is no such object, or if it is already being deleted. It needs the option
// [MayDelete].
//
// It deletes only what the controller itself has written: another program may have made the object, and
// have set its controller reference. The API server records that in the managed fields: they must name
// the controller, or a field manager that [MadeBy] names. Otherwise Delete leaves the object unchanged
// and returns a [UserError].
func (o *Owned[T, P]) Delete(ctx context.Context, r *Request[P], name string) error {
	key := o.key(r, name)
	if err := errors.Join(r.writable(), o.resource.may(o.owner.context, "delete", "Owns", "MayDelete")); err != nil {
		return err
	}
	cached, found, err := o.resource.cached(key)
	if err != nil {
		return fmt.Errorf("reading %s %s from the cache: %w", o.resource.kind.Kind, key, err)
	}
	if !found || !o.owns(r, cached) || cached.GetDeletionTimestamp() != nil {
		return nil
	}
	w := o.resource.writing("delete", key, nil)
	w.uid = cached.GetUID()
	w.confirm = func(ctx context.Context) error {
		if err := o.checkMade(ctx, r, key, cached); err != nil {
			return r.isStale(err)
		}
		if r.found {
			return r.isStale(o.owner.confirm(ctx, r))
		}
		return r.isStale(o.owner.confirmGone(ctx, r))
	}
	w.send = func(ctx context.Context) error {
		err := o.resource.delete(ctx, cached)
		if err == nil && !o.resource.dryRun || isGone(err) || isConflict(err) {
			// Wait until the cache has another version, or none.
			o.owner.consistency.Conflicted(r.key, o.resource.informer.GetStore(), cached)
		}
		return r.isStale(err)
	}
	return r.try(ctx, w)
}

// checkMade returns an error if the controller has not written the object. The cache does not keep the
// managed fields.
func (o *Owned[T, P]) checkMade(ctx context.Context, r *Request[P], key cache.ObjectName, cached T) error {
	live, found, err := o.resource.live(ctx, key)
	if err != nil {
		return err
	}
	if !found || live.GetUID() != cached.GetUID() {
		return o.resource.late(key, errors.New("it was deleted or created again"))
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" {
			continue // such as a status
		}
		if entry.Manager == o.resource.manager || slices.Contains(o.resource.madeBy, entry.Manager) {
			return nil
		}
		managers = append(managers, entry.Manager)
	}
	return &userError{reason: "NotMade", err: fmt.Errorf(
		"%s %s has the controller reference of %s %s, but %s has never written it, only %q: delete it, or correct its controller reference",
		o.resource.kind.Kind, key, o.owner.resource.kind.Kind, r.key, o.resource.manager, managers)}
}
