// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// catchUpPeriod is how often it is looked whether a cache holds what was listed. Nothing
// tells when it does, but it takes milliseconds, and is looked at only until then.
const catchUpPeriod = 5 * time.Millisecond

// informer is an informer, and what is known of the resource that it reads.
type informer struct {
	cache.SharedIndexInformer
	typed    any // the same, as a TypedSharedIndexInformer
	resource schema.GroupVersionResource
	selector string
	// transformed says that its first caller gave a transform.
	transformed bool
	factory     *Factory
	opened      chan struct{} // filled when a watch has been opened that goes on from a list
	lastSign    atomic.Int64  // of its watch, since the factory was made; 0: never

	// What follows is guarded by the factory's mutex.

	started bool
	// err is why the resource is not served, nil if it is, and since is when that began.
	err   error
	since time.Time
	// failure is why the last list or watch failed, nil once a watch works again.
	failure error
	// listed is the resourceVersion of the last list, once all that is in it has been sent.
	// The cache must hold it before the resource counts as served. nil: it must be listed.
	listed *string
	// logged is whether the log says that the resource is not there, or must not be read.
	logged bool
}

func (i *informer) name() string { return i.resource.GroupResource().String() }

// sign notes that the watch has given a sign of life.
func (i *informer) sign() { i.lastSign.Store(max(1, int64(time.Since(i.factory.made)))) }

// answered notes that the resource can be read.
func (i *informer) answered() {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	if isDenied(i.err) {
		i.setErr(fmt.Errorf("%w: %s", ErrNotSynced, i.name()))
	}
}

// denied notes that the resource is not there, or must not be read.
func (i *informer) denied(ctx context.Context, verb string, err error) {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	reason := fmt.Errorf("no API serves %s: %w", i.name(), err)
	if apierrors.IsForbidden(err) {
		reason = fmt.Errorf("not permitted to %s %s: %w", verb, i.name(), err)
	}
	i.listed, i.failure = nil, nil
	if rank(i.err) == rank(reason) {
		return
	}
	i.setErr(reason)
	i.logged = true
	logger := klog.FromContext(ctx)
	if apierrors.IsForbidden(err) {
		logger.Error(err, "Not permitted to read", "resource", i.name(), "verb", verb)
	} else {
		logger.Info("Waiting for API", "resource", i.name(), "version", i.resource.Version)
	}
}

// setListed notes that the informer has been sent all that there was at that version, or
// with nil that it must be listed anew.
func (i *informer) setListed(version *string) {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	i.listed = version
}

// mustRelist tells whether a watch that goes on from before would leave the cache without
// what has happened meanwhile.
func (i *informer) mustRelist() bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	return i.listed == nil
}

// watches notes that a watch has been opened that goes on from a list.
func (i *informer) watches() {
	i.setFailure(nil)
	select {
	case i.opened <- struct{}{}:
	default: // that it was is not yet known
	}
}

// follow keeps up whether the resource is served, until ctx ends.
func (i *informer) follow(ctx context.Context) {
	for {
		select {
		case <-i.opened:
		case <-ctx.Done():
			return
		}
		look := time.NewTicker(catchUpPeriod)
		for !i.caughtUp(ctx) && ctx.Err() == nil {
			select {
			case <-look.C:
			case <-ctx.Done():
			}
		}
		look.Stop()
	}
}

// caughtUp notes that the resource is served, if the cache holds what was listed. It
// returns false if it will.
func (i *informer) caughtUp(ctx context.Context) bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	if i.err == nil || i.listed == nil {
		return true // nothing was to be caught up, or it has gone again
	}
	if !i.HasSynced() {
		return false
	}
	// What cannot be compared is taken for true.
	if order, err := resourceversion.CompareResourceVersion(i.GetStore().LastStoreSyncResourceVersion(), *i.listed); err == nil && order < 0 {
		return false
	}
	if i.logged {
		i.logged = false
		klog.FromContext(ctx).Info("API is served", "resource", i.name(), "version", i.resource.Version)
	}
	i.setErr(nil)
	return true
}

// setErr notes why the resource is not served from now on, or nil if it is.
func (i *informer) setErr(err error) {
	i.err, i.since = err, time.Now()
	i.factory.announce()
}

// unreachable notes that the API server gave no answer. The line does not name the
// resource, so that the log has it once for all informers.
func (i *informer) unreachable(ctx context.Context, err error) {
	i.setFailure(err)
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // without the URL, which differs
	}
	klog.FromContext(ctx).Error(err, "API server cannot be reached")
}

// setFailure notes why the last list or watch failed, or with nil that it works. It
// returns false if that is known.
func (i *informer) setFailure(err error) bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	if errors.Is(err, i.failure) {
		return false
	}
	i.failure = err
	i.factory.announce()
	return true
}

// reason returns why the resource is not served, with the last failure if that explains
// it; nil if it is served.
func (i *informer) reason() error {
	if i.err == nil || i.failure == nil || isDenied(i.err) {
		return i.err
	}
	return fmt.Errorf("%w: %w", i.err, i.failure)
}

// failed is told why the informer is to list anew, which it does when this returns, but
// after a while that is the longer the more often it does.
func (i *informer) failed(ctx context.Context, r *cache.Reflector, err error) {
	for errors.Is(err, errMustRelist) {
		err = r.ListAndWatchWithContext(ctx) // nothing has failed that time would heal
	}
	if isEndOfWatch(ctx, err) {
		klog.FromContext(ctx).V(4).Info("Watch ended", "resource", i.name(), "reason", err)
		return
	}
	i.fail(ctx, err)
}

// isEndOfWatch tells whether the informer lists again because a watch has ended as watches
// do.
func isEndOfWatch(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) || isExpired(err)
}

// fail notes and logs why a list or watch failed, unless it has been noted.
func (i *informer) fail(ctx context.Context, err error) {
	if i.setFailure(err) {
		klog.FromContext(ctx).Error(err, "Reading failed", "resource", i.name())
	}
}
