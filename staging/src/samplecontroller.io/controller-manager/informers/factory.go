// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Factory creates, starts and stops the informers of a process, at most one for each
// resource. It is safe for concurrent use. Make it with [NewFactory].
type Factory struct {
	defaults []Option
	made     time.Time
	running  sync.WaitGroup

	mutex     sync.Mutex
	informers map[schema.GroupResource]*informer
	changed   chan struct{} // closed when the state of a resource changes
	cancels   []context.CancelFunc
	ended     bool
	synced    time.Time // when the first of the resources was; zero before
	reconnect func()    // see OnHang
}

// NewFactory returns a factory without informers. The options apply to all its informers.
func NewFactory(defaults ...Option) *Factory {
	return &Factory{defaults: defaults, made: time.Now(), informers: map[schema.GroupResource]*informer{},
		changed: make(chan struct{})}
}

// OnHang sets a function that is called when an API server answers neither requests nor watches
// of any resource, although the connection works. It should make the clients of the informers
// open a new connection, which a load balancer may direct to another API server. It replaces the
// function of an earlier call, and must not block.
func (f *Factory) OnHang(reconnect func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.reconnect = reconnect
}

// hangs reports whether the API server answers no informer. Callers hold the mutex.
func (f *Factory) hangs() bool {
	hang := false
	for _, i := range f.informers {
		switch {
		case i.state.phase == silent, errors.Is(i.state.cause, errNoAnswer):
			hang = true
		case i.started && i.state.phase != denied:
			return false
		}
	}
	return hang
}

// Start starts all requested informers and returns at once. They stop at [Factory.Shutdown] or when
// ctx ends, whichever comes first. Call it again to start informers requested since.
func (f *Factory) Start(ctx context.Context) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.ended {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	f.cancels = append(f.cancels, cancel)
	for _, i := range f.informers {
		if i.started {
			continue
		}
		i.started = true
		f.running.Go(func() { i.RunWithContext(ctx) })
	}
}

// Shutdown stops the informers and returns when all of their goroutines have ended. After
// that, Start does nothing.
func (f *Factory) Shutdown() {
	f.mutex.Lock()
	f.ended = true
	for _, cancel := range f.cancels {
		cancel()
	}
	f.mutex.Unlock()
	f.running.Wait()
}

// Undo returns a function that removes the informers that were first requested after this call, and
// are not started. A caller that fails while it requests informers thus leaves none behind. Informers
// that others have requested since are removed, too.
func (f *Factory) Undo() func() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before := maps.Clone(f.informers)
	return func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		maps.DeleteFunc(f.informers, func(resource schema.GroupResource, i *informer) bool {
			return before[resource] == nil && !i.started
		})
	}
}

// WaitUntilSettled waits until each requested informer has synced or is known not to sync
// for now: its API is absent, permission is missing, or its resource is broken. A resource
// is broken if the API server serves another resource, but answers the list of this one with
// an error, or has not answered it 30 seconds later. If the API server cannot be reached or
// serves nothing, WaitUntilSettled keeps waiting. It returns false if ctx ends first.
func (f *Factory) WaitUntilSettled(ctx context.Context) bool {
	for {
		pending, changed := f.pending()
		if len(pending) == 0 {
			for _, i := range f.all() {
				if r := i.report(); r.Failure != nil && !i.HasSynced() {
					klog.FromContext(ctx).Error(r.Failure, "Not waiting for a resource that cannot be read", "resource", r.Name())
				}
			}
			return true
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Second): // a resource without an answer may count as broken now
		case <-ctx.Done():
			return false
		}
	}
}

// pending returns the informers that have not settled. The channel is closed when the
// result may have changed, except by time.
func (f *Factory) pending() (pending []*informer, changed <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	long := time.Since(f.synced) >= patience
	for _, i := range f.informers {
		err := i.state.failure()
		broken := err != nil && (long || !isUnreachable(err))
		if !i.HasSynced() && i.state.phase != denied && (f.synced.IsZero() || !broken) {
			pending = append(pending, i)
		}
	}
	return pending, f.changed
}

// announce wakes everyone who waits for a change. Callers hold the mutex.
func (f *Factory) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Name returns the name of the factory's health check.
func (f *Factory) Name() string { return "informer-sync" }

// Check is the check of /readyz. It returns an error while a requested informer has not settled, has
// not synced because permission to read or an answer is missing, or has a watch that is silent for 3
// minutes or ends at once, 10 times in a row. The error names the resources and reasons. An absent or
// broken API is not an error, because another replica could do no better; [Factory.Resources] shows it.
func (f *Factory) Check(*http.Request) error {
	pending, _ := f.pending()
	var problems []string
	for _, i := range f.all() {
		r, follows := i.report(), i.follows()
		switch {
		case !i.HasSynced() && (slices.Contains(pending, i) || apierrors.IsForbidden(r.Err) || isUnanswered(r.Failure)):
			problems = append(problems, truncate.Error(r.Err))
		case !follows:
			problems = append(problems, r.silence())
		}
	}
	return joined(problems)
}

// CheckWatches is a check of /healthz. It returns an error if a watch has been silent for 3 minutes,
// or watches end at once, 10 times in a row, so that the cache may be stale. A resource that is not
// served has no watch. It also returns an error if a transform or index function panics on an object
// in a cache.
func (f *Factory) CheckWatches() error {
	var problems []string
	for _, i := range f.all() {
		if r := i.report(); r.Served && (time.Since(r.LastSign) > maxSilence || !i.follows()) {
			problems = append(problems, r.silence())
		}
		if err := i.guard.check(i.GetStore()); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return joined(problems)
}

func joined(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// all returns the requested informers, sorted by name.
func (f *Factory) all() []*informer {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var all []*informer
	for _, i := range f.informers {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b *informer) int { return cmp.Compare(a.name(), b.name()) })
	return all
}
