// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
)

// Delete deletes the object with that name if the reconciled object owns it. It first checks with the
// API server that the reconciled object is as in the cache, or, if the cache lacks it, that it is gone.
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
	w.confirm = func(ctx context.Context) error {
		if r.found {
			return r.isStale(o.owner.confirm(ctx, r))
		}
		return r.isStale(o.owner.confirmGone(ctx, r))
	}
	w.send = func(ctx context.Context) error {
		err := o.resource.delete(ctx, cached)
		if err == nil || isConflict(err) { // wait until the cache has another version, or none
			o.owner.consistency.Conflicted(r.key, o.resource.informer.GetStore(), cached)
		}
		return r.isStale(err)
	}
	return r.try(ctx, w)
}
