// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// Factory is what all generated shared informer factories have in common.
type Factory interface {
	// StartWithContext starts the informers that were asked for and not yet
	// started.
	StartWithContext(ctx context.Context)
	// Shutdown waits for the informers to stop, once the context that they were
	// started with has ended.
	Shutdown()
}

// Handle is the one handle on all shared informer factories of a process. It may
// be used by several goroutines.
type Handle struct {
	factories []Factory

	mutex   sync.Mutex
	asked   map[cache.Store]*asked
	cancels []context.CancelFunc
}

// asked is one informer that was asked for.
type asked struct {
	cache.DoneChecker // of its sync
	// denied is closed when the API server has said that it does not serve the
	// resource or does not permit to read it.
	denied chan struct{}
}

// NewHandle returns a handle on the given factories.
func NewHandle(factories ...Factory) *Handle {
	return &Handle{factories: factories, asked: map[cache.Store]*asked{}}
}

// Ask tells the handle that informer, made by one of its factories, is wanted,
// and returns it. An informer may be asked for more than once, but not for the
// first time after it was started.
func Ask[T cache.Object](h *Handle, informer cache.TypedSharedIndexInformer[T]) cache.TypedSharedIndexInformer[T] {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.asked[informer.GetStore()] != nil {
		return informer
	}
	a := &asked{DoneChecker: informer.HasSyncedChecker(), denied: make(chan struct{})}
	h.asked[informer.GetStore()] = a
	deny := sync.OnceFunc(func() { close(a.denied) })
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			deny()
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		panic(fmt.Sprintf("asking for %s: %v", a.Name(), err)) // somebody has started it without the handle
	}
	return informer
}

// Start starts all informers that were asked for. It does not wait for them.
// They stop at [Handle.Shutdown] or when ctx ends, whichever is first. It may be
// called again for those that were asked for since.
func (h *Handle) Start(ctx context.Context) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	h.cancels = append(h.cancels, cancel)
	for _, factory := range h.factories {
		factory.StartWithContext(ctx)
	}
}

// WaitForSync waits until all informers that were asked for hold what the API
// server had when they were started. It returns false if ctx ended before.
func (h *Handle) WaitForSync(ctx context.Context) bool {
	var checkers []cache.DoneChecker
	for _, a := range h.all() {
		checkers = append(checkers, a)
	}
	return cache.WaitFor(ctx, "", checkers...)
}

// WaitUntilSettled waits until each informer that was asked for has synced or is
// known to wait for its API or for permission, which may take for ever. It returns
// false if ctx ended before.
func (h *Handle) WaitUntilSettled(ctx context.Context) bool {
	for _, a := range h.all() {
		select {
		case <-a.Done():
		case <-a.denied:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Shutdown stops the informers and returns when all of their goroutines have
// ended. Nothing can be started on the handle afterwards.
func (h *Handle) Shutdown() {
	h.mutex.Lock()
	for _, cancel := range h.cancels {
		cancel()
	}
	h.mutex.Unlock()
	for _, factory := range h.factories {
		factory.Shutdown()
	}
}

// Name is the name of the handle's health check.
func (h *Handle) Name() string { return "informer-sync" }

// Check fails while an informer that was asked for has not synced, and names it.
func (h *Handle) Check(*http.Request) error {
	var waiting []string
	for _, a := range h.all() {
		if !cache.IsDone(a) {
			waiting = append(waiting, a.Name())
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.Sort(waiting)
	return fmt.Errorf("not yet synced: %s", strings.Join(waiting, ", "))
}

func (h *Handle) all() []*asked {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Collect(maps.Values(h.asked))
}
