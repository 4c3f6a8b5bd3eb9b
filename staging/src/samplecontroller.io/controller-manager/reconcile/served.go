// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Sources reports whether the APIs that informers read are available. An *informers.Factory
// implements it.
type Sources interface {
	// Served returns nil if the informers of all these stores are in sync with the API server.
	// Otherwise it returns the reason. If the API is missing or permission is denied, that is
	// an API error for which apierrors.IsNotFound or IsForbidden is true. changed is closed
	// when the result may have changed.
	Served(stores ...cache.Store) (err error, changed <-chan struct{})
	// Resource returns the name of the resource in the store, such as "pods".
	Resource(store cache.Store) string
}

// whileServed waits until the loop's informers are served. It returns a context that ends when
// they no longer are. The caller must call stop, which also ends that context. whileServed
// returns false if ctx ends first.
func (l *Loop) whileServed(ctx context.Context) (served context.Context, stop func(), ok bool) {
	if l.sources == nil {
		return ctx, func() {}, ctx.Err() == nil
	}
	var stores []cache.Store
	for _, w := range l.watches {
		stores = append(stores, w.store)
	}
	for ctx.Err() == nil {
		err, changed := l.sources.Served(stores...)
		if err == nil {
			served, stop = l.untilUnserved(ctx, stores, changed)
			return served, stop, true
		}
		l.tracker.pause(err)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, nil, false
}

// untilUnserved returns a context that ends when the informers of the stores are no longer
// served.
func (l *Loop) untilUnserved(ctx context.Context, stores []cache.Store, changed <-chan struct{}) (served context.Context, stop func()) {
	served, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-changed:
			case <-served.Done():
				return
			}
			err, next := l.sources.Served(stores...)
			if err != nil {
				klog.FromContext(ctx).Info("Pausing: a watched API is unavailable", "reason", err.Error())
				cancel()
				return
			}
			changed = next
		}
	}()
	return served, func() {
		cancel()
		<-stopped
	}
}
