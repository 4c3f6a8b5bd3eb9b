// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// informer is an informer with the state of its resource.
type informer struct {
	cache.SharedIndexInformer
	typed    any // the same informer, as a TypedSharedIndexInformer
	resource schema.GroupVersionResource
	selector string
	example  runtime.Object // as its source lists them
	cached   reflect.Type   // of the objects in the cache
	// transformed is whether the first caller gave a transform.
	transformed bool
	// managedFields is whether the cache keeps the managed fields.
	managedFields bool
	factory       *Factory
	guard         guard

	// The fields below are guarded by the factory's mutex.

	started bool
	state   state
	// told is the rank of the denial that the log reports, 0 if it reports none.
	told int
}

func (i *informer) name() string { return i.resource.GroupResource().String() }

// AddIndexers adds index functions that may panic. It overrides the method of the informer.
func (i *informer) AddIndexers(indexers cache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(i.guard.indexers(indexers))
}

// on applies an event to the state, and announces and reports whether that changed it.
func (i *informer) on(event func(*state)) (changed bool) {
	f := i.factory
	f.mutex.Lock()
	before := i.state
	event(&i.state)
	changed = before.phase != i.state.phase || before.served != i.state.served || text(before.cause) != text(i.state.cause)
	if changed {
		f.announce()
	}
	reconnect := f.reconnect
	hangs := changed && reconnect != nil && f.hangs()
	f.mutex.Unlock()
	if hangs {
		reconnect()
	}
	return changed
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// denied records that the resource is absent or that permission to read is missing.
func (i *informer) denied(ctx context.Context, verb string, err error) {
	reason := fmt.Errorf("no API serves %s (is it installed, and is that the plural of its kind?): %w", i.name(), err)
	if apierrors.IsForbidden(err) {
		reason = fmt.Errorf("not permitted to %s %s: %w", verb, i.name(), err)
	}
	news := false
	i.on(func(s *state) {
		s.deny(reason)
		news = i.told != rank(reason)
		i.told = rank(reason)
	})
	logger := klog.FromContext(ctx)
	switch {
	case !news:
	case apierrors.IsForbidden(err):
		logger.Error(err, "Not permitted to read", "resource", i.name(), "verb", verb)
	default:
		logger.Info("Waiting for API", "resource", i.name(), "version", i.resource.Version)
	}
}

// failed records and logs why a list or watch failed. It logs what is not known already.
func (i *informer) failed(ctx context.Context, err error) {
	if ctx.Err() == nil && i.on(func(s *state) { s.fail(err) }) {
		klog.FromContext(ctx).Error(err, "Reading failed", "resource", i.name())
	}
}

// unreachable records that the API server did not respond. The log line does not name the
// resource, so that it appears once for all informers.
func (i *informer) unreachable(ctx context.Context, err error) {
	i.on(func(s *state) { s.fail(err) })
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // without the URL, which differs
	}
	klog.FromContext(ctx).Error(err, "API server cannot be reached")
}

// ended records the end of a watch, and logs that watches end at once.
func (i *informer) ended(ctx context.Context, short bool) {
	if i.on(func(s *state) { s.end(short) }) {
		klog.FromContext(ctx).Error(errShortWatches, "Watching failed", "resource", i.name())
	}
}

// muted records and logs that a watch was silent for too long.
func (i *informer) muted(ctx context.Context) {
	i.on((*state).mute)
	klog.FromContext(ctx).Info("Listing again: the watch was silent for too long", "resource", i.name(), "limit", maxSilence)
}

// mustRelist reports whether a watch would leave the cache without earlier changes.
func (i *informer) mustRelist() bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	return i.state.version == nil || !i.state.ended.IsZero() && time.Since(i.state.ended) > maxInterruption
}

// caughtUp records that the resource is served if the cache holds the last list. It returns
// false if the cache is still catching up.
func (i *informer) caughtUp(ctx context.Context) bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	s := &i.state
	if s.served || s.version == nil {
		return true // nothing to wait for, or gone again
	}
	if !i.HasSynced() {
		return false
	}
	// Versions that cannot be compared count as caught up.
	if order, err := resourceversion.CompareResourceVersion(i.GetStore().LastStoreSyncResourceVersion(),
		*s.version); err == nil && order < 0 {
		return false
	}
	if i.told != 0 {
		i.told = 0
		klog.FromContext(ctx).Info("API is served", "resource", i.name(), "version", i.resource.Version)
	}
	if s.cache(); i.factory.synced.IsZero() {
		i.factory.synced = time.Now()
	}
	i.factory.announce()
	return true
}

// relist lists and watches until ctx ends. The informer calls it after the first error, and
// would itself wait for up to a minute before it lists again, which cannot be configured.
// All ends are errors, because the informer continues after a watch that ended normally.
func (i *informer) relist(ctx context.Context, r *cache.Reflector, err error) {
	for ctx.Err() == nil {
		if !errors.Is(err, errRelist) {
			if _, known := errors.AsType[knownError](err); !known && !isEndOfWatch(ctx, err) {
				i.failed(ctx, err)
			}
			i.pause(ctx)
		}
		err = r.ListAndWatchWithContext(ctx)
	}
}

// isEndOfWatch reports whether a watch ended in a normal way.
func isEndOfWatch(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) || isExpired(err)
}

// pause waits before a request is repeated.
func (i *informer) pause(ctx context.Context) {
	i.factory.mutex.Lock()
	period := i.state.retryAfter()
	i.factory.mutex.Unlock()
	select {
	case <-time.After(period):
	case <-ctx.Done():
	}
}
