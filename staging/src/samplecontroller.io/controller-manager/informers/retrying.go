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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

const (
	// retryPeriod is how often to retry while a resource cannot be read.
	retryPeriod = time.Second
	// deniedPeriod is how often to retry once a resource has been absent or forbidden for a
	// minute. jitter adds up to a fifth.
	deniedPeriod = 10 * time.Second
)

func jitter(period time.Duration) time.Duration { return wait.Jitter(period, 0.2) }

// retryingListerWatcher lists and watches for an informer. It retries while the API server
// cannot be reached, the resource does not exist, or permission to read it is missing. The
// informer does not see these errors, and so does not list again after an outage.
type retryingListerWatcher[L runtime.Object] struct {
	source   Source[L]
	selector string
	informer *informer
}

func (p retryingListerWatcher[L]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.LabelSelector = p.selector
	list, cancel, err := persist(ctx, p.informer, "list",
		func(ctx context.Context) (L, error) { return p.source.List(ctx, options) })
	if err != nil {
		return nil, err
	}
	cancel()
	page, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p.informer.name(), err)
	}
	if page.GetContinue() == "" {
		p.informer.on(func(s *state) { s.list(page.GetResourceVersion()) })
	}
	return list, nil
}

func (p retryingListerWatcher[L]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = p.selector
	listsFirst := ptr.Deref(options.SendInitialEvents, false)
	if !listsFirst && p.informer.mustRelist() {
		return nil, errRelist
	}
	w, cancel, err := persist(ctx, p.informer, "watch", func(ctx context.Context) (watch.Interface,
		error) {
		return p.source.Watch(ctx, options)
	})
	if err != nil {
		return nil, err
	}
	if !listsFirst && (p.informer.mustRelist() || p.isBehind(ctx, options.ResourceVersion)) {
		w.Stop()
		cancel()
		return nil, errRelist
	}
	return newWatchProxy(ctx, w, p.informer, listsFirst, cancel), nil
}

// isBehind reports whether the API server has not reached the version that a watch resumes
// from, or does not say. It has not after etcd was restored from a backup. It then opens the
// watch, but sends nothing before it has reached that version.
func (p retryingListerWatcher[L]) isBehind(ctx context.Context, version string) bool {
	p.informer.factory.mutex.Lock()
	resumes := !p.informer.state.ended.IsZero()
	p.informer.factory.mutex.Unlock()
	if !resumes {
		return false
	}
	// Without the selector, because the API server would look for an object that matches.
	list, cancel, err := ask(ctx, p.informer, "list", func(ctx context.Context) (L, error) {
		return p.source.List(ctx, metav1.ListOptions{Limit: 1})
	})
	defer cancel()
	if err != nil {
		return true
	}
	page, err := meta.ListAccessor(list)
	if err != nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(page.GetResourceVersion(), version)
	return err == nil && order < 0
}

// persist retries request while the API server cannot be reached, the resource does not
// exist or permission is missing, until ctx ends. It returns all other errors to the
// informer. cancel ends the context of the request.
func persist[A any](ctx context.Context, i *informer, verb string, request func(context.Context) (A, error)) (answer A,
	cancel context.CancelFunc, err error) {
	for ctx.Err() == nil {
		answer, cancel, err = ask(ctx, i, verb, request)
		if err == nil {
			i.on((*state).answered)
			return answer, cancel, nil
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return answer, nil, err
		case isDenied(err):
			i.denied(ctx, verb, err)
		case isUnreachable(err):
			i.unreachable(ctx, err)
		case apierrors.IsTooManyRequests(err):
			// The reflector would wait for up to a minute, even after the end of ctx.
			i.failed(ctx, err)
		case isEndOfWatch(ctx, err), isAhead(err), apierrors.IsInvalid(err):
			// An API server that cannot stream lists rejects the watch. The informer then
			// requests a list.
			return answer, nil, knownError{err}
		default:
			i.failed(ctx, err)
			return answer, nil, knownError{err}
		}
		i.pause(ctx)
	}
	return answer, nil, ctx.Err()
}

// ask sends a request. It reports one that has no answer in time, and gives it up: a watch,
// which is answered at once, then, and a list, which may be long, after maxSilence.
func ask[A any](ctx context.Context, i *informer, verb string, request func(context.Context) (A, error)) (answer A,
	cancel context.CancelFunc, err error) {
	noAnswer := fmt.Errorf("%w to %s since %s", errNoAnswer, verb, time.Now().UTC().Format(time.RFC3339))
	requestCtx, abort := context.WithCancelCause(ctx)
	defer time.AfterFunc(patience, func() { i.failed(ctx, noAnswer) }).Stop()
	limit := maxSilence
	if verb == "watch" {
		limit = patience
	}
	defer time.AfterFunc(limit, func() { abort(noAnswer) }).Stop()
	answer, err = request(requestCtx)
	if err != nil && errors.Is(context.Cause(requestCtx), noAnswer) {
		err = noAnswer
	}
	return answer, func() { abort(nil) }, err
}

// knownError is an error that the state of the informer already has, if it is a failure.
type knownError struct{ error }

func (e knownError) Unwrap() error { return e.error }

// errNoAnswer is the failure of a request that has no answer.
var errNoAnswer = errors.New("no answer")

// errRelist rejects a watch that would leave the cache without some changes.
var errRelist = errors.New("a new list is required")

// isExpired reports whether the requested version is too old to watch from.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isAhead reports whether the API server has not reached the requested version. The informer
// then requests the newest.
func isAhead(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// isDenied reports whether requests fail until somebody installs the API or grants permission.
func isDenied(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// isUnreachable reports whether the API server did not respond at all.
func isUnreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// isUnanswered reports whether it is not known that another replica could do no better.
func isUnanswered(err error) bool { return isUnreachable(err) || errors.Is(err, errNoAnswer) }
