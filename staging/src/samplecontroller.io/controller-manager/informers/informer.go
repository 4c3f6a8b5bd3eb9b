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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// catchUpPeriod is how often to check whether a cache has caught up with the last list.
// There is no notification for that. It takes milliseconds, and the checks end then.
const catchUpPeriod = 5 * time.Millisecond

// informer is an informer with the state of its resource.
type informer struct {
	cache.SharedIndexInformer
	typed    any // the same informer, as a TypedSharedIndexInformer
	resource schema.GroupVersionResource
	selector string
	example  runtime.Object // as its source lists them
	// transformed is whether the first caller gave a transform.
	transformed bool
	factory     *Factory
	opened      chan struct{} // receives when a watch that continues a list is opened
	lastSign    atomic.Int64  // of the watch, as time since the factory was created; 0: never

	// The fields below are guarded by the factory's mutex.

	started bool
	// err is why the resource is not served, nil if it is. since is when that began.
	err   error
	since time.Time
	// failure is why the last list or watch failed, nil once a watch works again.
	failure error
	// listed is the resourceVersion of the last complete list. The resource counts as served
	// once the cache holds that version. nil means that a new list is required.
	listed *string
	// logged is whether the log reports the resource as absent or not permitted.
	logged bool
}

func (i *informer) name() string { return i.resource.GroupResource().String() }

// sign records a sign of life of the watch.
func (i *informer) sign() { i.lastSign.Store(max(1, int64(time.Since(i.factory.made)))) }

// answered records that the resource can be read.
func (i *informer) answered() {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	if isDenied(i.err) {
		i.setErr(fmt.Errorf("%w: %s", ErrNotSynced, i.name()))
	}
}

// denied records that the resource is absent or that permission to read is missing.
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

// setListed records the resourceVersion of a complete list, or nil if a new list is required.
func (i *informer) setListed(version *string) {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	i.listed = version
}

// mustRelist reports whether a resumed watch would leave the cache without changes made
// since.
func (i *informer) mustRelist() bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	return i.listed == nil
}

// watches records that a watch that continues a list has been opened.
func (i *informer) watches() {
	i.setFailure(nil)
	select {
	case i.opened <- struct{}{}:
	default: // a notification is already pending
	}
}

// follow keeps track of whether the resource is served, until ctx ends.
func (i *informer) follow(ctx context.Context) {
	for {
		select {
		case <-i.opened:
		case <-ctx.Done():
			return
		}
		for !i.caughtUp(ctx) {
			select {
			case <-time.After(catchUpPeriod):
			case <-ctx.Done():
				return
			}
		}
	}
}

// caughtUp records that the resource is served if the cache holds the last list. It returns
// false if the cache is still catching up.
func (i *informer) caughtUp(ctx context.Context) bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	if i.err == nil || i.listed == nil {
		return true // already served, or gone again
	}
	if !i.HasSynced() {
		return false
	}
	// Versions that cannot be compared count as caught up.
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

// setErr records why the resource is not served, or with nil that it is.
func (i *informer) setErr(err error) {
	i.err, i.since = err, time.Now()
	i.factory.announce()
}

// unreachable records that the API server did not respond. The log line does not name the
// resource, so that it appears once for all informers.
func (i *informer) unreachable(ctx context.Context, err error) {
	i.setFailure(err)
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // without the URL, which differs
	}
	klog.FromContext(ctx).Error(err, "API server cannot be reached")
}

// setFailure records why the last list or watch failed, or with nil that it works. It
// returns false if nothing changed.
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

// reason returns why the resource is not served, nil if it is. It includes the last failure
// if that is the cause.
func (i *informer) reason() error {
	if i.err == nil || i.failure == nil || isDenied(i.err) {
		return i.err
	}
	return fmt.Errorf("%w: %w", i.err, i.failure)
}

// failed handles the error before the informer lists again. The informer does so when
// failed returns, after a delay that grows with the number of failures.
func (i *informer) failed(ctx context.Context, r *cache.Reflector, err error) {
	for errors.Is(err, errMustRelist) {
		err = r.ListAndWatchWithContext(ctx) // not a failure, so do not back off
	}
	if isEndOfWatch(ctx, err) {
		klog.FromContext(ctx).V(4).Info("Watch ended", "resource", i.name(), "reason", err)
		return
	}
	i.fail(ctx, err)
}

// isEndOfWatch reports whether a watch ended in a normal way.
func isEndOfWatch(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) || isExpired(err)
}

// fail records and logs why a list or watch failed, unless that is already known.
func (i *informer) fail(ctx context.Context, err error) {
	if i.setFailure(err) {
		klog.FromContext(ctx).Error(err, "Reading failed", "resource", i.name())
	}
}
