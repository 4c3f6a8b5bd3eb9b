// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	synced  []cache.DoneChecker
	cancels []context.CancelFunc
}

// NewHandle returns a handle on the given factories.
func NewHandle(factories ...Factory) *Handle {
	return &Handle{factories: factories}
}

// Ask tells the handle that informer, made by one of its factories, is wanted,
// and returns it. An informer may be asked for more than once.
func Ask[T cache.Object](h *Handle, informer cache.TypedSharedIndexInformer[T]) cache.TypedSharedIndexInformer[T] {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.synced = append(h.synced, informer.HasSyncedChecker())
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
	return cache.WaitFor(ctx, "", h.checkers()...)
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
	for _, checker := range h.checkers() {
		if !cache.IsDone(checker) {
			waiting = append(waiting, checker.Name())
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.Sort(waiting)
	return fmt.Errorf("not yet synced: %s", strings.Join(slices.Compact(waiting), ", "))
}

func (h *Handle) checkers() []cache.DoneChecker {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.synced)
}
