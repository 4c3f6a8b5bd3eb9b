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

// retryPeriod is how often it is tried whether a resource is served, and whether the API
// server can be reached.
const retryPeriod = time.Second

// retryingListerWatcher lists and watches for an informer. While the API server cannot be reached, or
// says that there is no such resource, or that it must not be read, it waits and tries
// again, so that the informer never learns of it and never backs off.
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

// persist calls request until there is an answer other than that there is no such resource
// or that it must not be read, or until ctx ends. What else goes wrong is left to the
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
		case isEndOfWatch(ctx, err), apierrors.IsInvalid(err):
			// An API server that does not stream lists refuses the watch, and is asked for
			// a list instead.
			return answer, err
		default:
			// The informer does not report each failure: some it just tries again.
			i.fail(ctx, err)
			return answer, err
		}
		retry := time.NewTimer(retryPeriod)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
		}
	}
}

// errMustRelist is the answer to a watch that would go on from where the informer was before
// the resource went, or was replaced.
var errMustRelist = errors.New("what there is must be listed anew")

// isExpired tells whether it cannot be watched from so long ago.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isDenied tells whether it is no use to ask before somebody does something about it.
func isDenied(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// isUnreachable tells whether the API server gave no answer at all.
func isUnreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
