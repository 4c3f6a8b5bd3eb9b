// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// retryPeriod is how often to retry while a resource is not served or the API server cannot
// be reached.
const retryPeriod = time.Second

// retryingListerWatcher lists and watches for an informer. It retries while the API server
// cannot be reached, the resource does not exist, or permission to read it is missing. The
// informer does not see these errors, and so does not back off.
type retryingListerWatcher[L runtime.Object] struct {
	source   Source[L]
	selector string
	informer *informer
}

func (p retryingListerWatcher[L]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.LabelSelector = p.selector
	list, err := persist(ctx, p.informer, "list", func() (L, error) { return p.source.List(ctx, options) })
	if err != nil {
		return nil, err
	}
	page, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p.informer.name(), err)
	}
	if page.GetContinue() == "" {
		p.informer.setListed(ptr.To(page.GetResourceVersion()))
	}
	return list, nil
}

func (p retryingListerWatcher[L]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = p.selector
	w, err := persist(ctx, p.informer, "watch", func() (watch.Interface, error) { return p.source.Watch(ctx, options) })
	if err != nil {
		return nil, err
	}
	listsFirst := ptr.Deref(options.SendInitialEvents, false)
	if !listsFirst && p.informer.mustRelist() {
		w.Stop()
		return nil, errMustRelist
	}
	return newWatchProxy(w, p.informer, listsFirst), nil
}

// persist retries request while the API server cannot be reached, the resource does not
// exist or permission is missing, until ctx ends. It returns all other errors to the
// informer.
func persist[A any](ctx context.Context, i *informer, verb string, request func() (A, error)) (answer A, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return answer, err
		}
		answer, err = request()
		switch {
		case err == nil:
			i.answered()
			return answer, nil
		case ctx.Err() != nil:
			return answer, err
		case isDenied(err):
			i.denied(ctx, verb, err)
		case isUnreachable(err):
			i.unreachable(ctx, err)
		case apierrors.IsTooManyRequests(err):
			// The reflector would wait for up to a minute, even after the end of ctx.
			i.fail(ctx, err)
		case isEndOfWatch(ctx, err), apierrors.IsInvalid(err):
			// An API server that cannot stream lists rejects the watch. The informer then
			// requests a list.
			return answer, err
		default:
			// The informer does not report all failures: it silently retries some.
			i.fail(ctx, err)
			return answer, err
		}
		select {
		case <-time.After(retryPeriod):
		case <-ctx.Done():
		}
	}
}

// errMustRelist rejects a watch that would resume from a version before the resource was
// removed or replaced.
var errMustRelist = errors.New("a new list is required")

// isExpired reports whether the requested version is too old to watch from.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isDenied reports whether requests fail until somebody installs the API or grants permission.
func isDenied(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// isUnreachable reports whether the API server did not respond at all.
func isUnreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
