// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Factory makes the informers of a process, at most one for each resource, and starts and
// stops them. It may be used by several goroutines.
type Factory struct {
	defaults []Option
	made     time.Time
	running  sync.WaitGroup

	mutex     sync.Mutex
	informers map[schema.GroupResource]*informer
	changed   chan struct{} // closed when what is known of a resource changes
	cancels   []context.CancelFunc
	ended     bool
}

// NewFactory returns a factory without informers. The options are those of all that will
// be asked for.
func NewFactory(defaults ...Option) *Factory {
	return &Factory{defaults: defaults, made: time.Now(), informers: map[schema.GroupResource]*informer{}, changed: make(chan struct{})}
}

// Start starts all informers that were asked for. It does not wait for them.
// They stop at [Factory.Shutdown] or when ctx ends, whichever is first. It may be
// called again for those that were asked for since.
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
		f.running.Go(func() { i.follow(ctx) })
	}
}

// Shutdown stops the informers and returns when all of their goroutines have
// ended. Nothing can be started on the factory afterwards.
func (f *Factory) Shutdown() {
	f.mutex.Lock()
	f.ended = true
	for _, cancel := range f.cancels {
		cancel()
	}
	f.mutex.Unlock()
	f.running.Wait()
}

// WaitUntilSettled waits until each informer that was asked for has synced or is known
// not to for now: its API is absent, it lacks permission, or its resource is broken. A
// resource is broken if the API server answers its list with an error while it serves
// another one. If the API server cannot be reached, or serves nothing, this waits on. It
// returns false if ctx ended before.
func (f *Factory) WaitUntilSettled(ctx context.Context) bool {
	for {
		pending, changed := f.pending()
		if len(pending) == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// pending returns the informers that have not settled. The channel is closed when the
// answer may be another.
func (f *Factory) pending() (pending []*informer, changed <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var broken []*informer
	synced := false
	for _, i := range f.informers {
		switch {
		case i.HasSynced():
			synced = true
		case isDenied(i.err):
		case i.failure != nil && !isUnreachable(i.failure):
			broken = append(broken, i)
		default:
			pending = append(pending, i)
		}
	}
	if !synced {
		pending = append(pending, broken...)
	}
	return pending, f.changed
}

// announce wakes those who wait for a change. Callers hold the mutex.
func (f *Factory) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Name is the name of the factory's health check.
func (f *Factory) Name() string { return "informer-sync" }

// Check fails while an informer that was asked for has not settled, or may not read its
// resource, and names it and the reason. An API that is absent or broken does not make a
// replica unready: no other replica could do better. [Factory.Resources] shows it.
func (f *Factory) Check(*http.Request) error {
	pending, _ := f.pending()
	var problems []string
	for _, i := range f.all() {
		err := i.state().Err
		if !i.HasSynced() && (slices.Contains(pending, i) || apierrors.IsForbidden(err)) {
			problems = append(problems, truncate.Error(err))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// maxSilence is how long a watch may say nothing. The API server says about once a minute
// that nothing has changed, and the transport breaks a connection that is dead.
const maxSilence = 3 * time.Minute

// CheckWatches returns an error while a watch has given no sign of life for 3 minutes, so
// that its cache may be old. A resource that is not served has no watch.
func (f *Factory) CheckWatches() error {
	var silent []string
	for _, i := range f.all() {
		if r := i.state(); r.Served && time.Since(r.LastSign) > maxSilence {
			silent = append(silent, fmt.Sprintf("the watch of %s has been silent since %s", r.Name(), r.LastSign.UTC().Format(time.RFC3339)))
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return errors.New(strings.Join(silent, "; "))
}

// all returns the informers that were asked for, by name.
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
