// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Sources reports whether the APIs that informers read are available. An *informers.Factory
// implements it.
type Sources interface {
	// Served returns a nil error if the informers of all these stores are in sync with the API
	// server, else the reason. If the API is missing or permission is denied, that is an API
	// error for which apierrors.IsNotFound or IsForbidden is true. changed is closed when the
	// result may have changed.
	Served(stores ...cache.Store) (err error, changed <-chan struct{})
	// Resource returns the name of the resource in the store, such as "pods", for triggers and logs.
	Resource(store cache.Store) string
}

// workWhileServed syncs keys until ctx ends or one of the loop's informers is no longer served.
// It first waits until they are served, or until that may have changed.
func (l *Loop) workWhileServed(ctx context.Context) error {
	if l.sources == nil {
		return l.work(ctx)
	}
	var stores []cache.Store
	for _, w := range l.watches {
		stores = append(stores, w.informer.GetStore())
	}
	err, changed := l.sources.Served(stores...)
	if err != nil {
		l.tracker.pause(err)
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		l.awaitUnserved(ctx, stores, changed)
	})
	defer watching.Wait()
	defer cancel()
	return l.work(ctx)
}

// awaitUnserved returns when an informer is no longer served, or ctx ends.
func (l *Loop) awaitUnserved(ctx context.Context, stores []cache.Store, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		err, next := l.sources.Served(stores...)
		if err != nil {
			klog.FromContext(ctx).Info("Pausing: a watched API is unavailable", "reason", err.Error())
			return
		}
		changed = next
	}
}
