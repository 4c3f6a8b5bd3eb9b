// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// catchUpPeriod is how often to check whether a cache has caught up with the last list.
// There is no notification for that. It takes milliseconds, and the checks end then.
const catchUpPeriod = 5 * time.Millisecond

// emptyWatch is the type of the watch that client-go returns, without an error, when a watch
// request timed out or lost its connection before the response.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// errNoStream is the failure of a stream of initial objects that ends or stops too early.
var errNoStream = errors.New("the initial objects were not streamed to their end")

// watchProxy is a watch that reports to its informer: the end of the initial list, signs of
// life, their absence, and its end.
type watchProxy struct {
	watch.Interface
	informer *informer
	results  chan watch.Event
	stopped  chan struct{}
	stop     func() // closes stopped and cancels the request
	// listing is whether the initial list is not complete.
	listing bool
	// begin is when the watch began to continue the list. heard is whether it sent something.
	begin time.Time
	heard bool
	// given is whether run has given up the watch, so that its next error is no news.
	given bool
}

// newWatchProxy forwards the events of w until w ends or is stopped.
func newWatchProxy(ctx context.Context, w watch.Interface, i *informer, listsFirst bool, cancel func()) *watchProxy {
	p := &watchProxy{Interface: w, informer: i, results: make(chan watch.Event), stopped: make(chan struct{}),
		listing: listsFirst, begin: time.Now()}
	p.stop = sync.OnceFunc(func() { close(p.stopped); cancel() })
	if !listsFirst && reflect.TypeOf(w) != emptyWatch {
		i.on((*state).open)
	}
	go p.run(ctx)
	return p
}

// run forwards events. The informer would treat a watch that ends too early as failed. So run
// ends it later, and the informer opens a new one, or lists.
func (w *watchProxy) run(ctx context.Context) {
	defer close(w.results)
	limit := maxSilence
	if w.listing {
		limit = patience
	}
	silence, lasts, catchUp := time.NewTimer(limit), time.NewTimer(shortWatch), time.NewTimer(0)
	defer silence.Stop()
	defer lasts.Stop()
	defer catchUp.Stop()
	events, ended := w.Interface.ResultChan(), make(<-chan time.Time)
	var stopped <-chan struct{} // once there are no more events
	for {
		select {
		case event, ok := <-events:
			switch {
			case !ok:
				w.end(ctx)
				events, ended, stopped = nil, time.After(time.Until(w.begin.Add(shortWatch))), w.stopped
				silence.Stop()
				lasts.Stop()
			case w.forward(ctx, event):
				limit = maxSilence
				lasts.Reset(shortWatch)
				catchUp.Reset(0)
				fallthrough
			default:
				silence.Reset(limit)
			}
		case <-silence.C:
			if !w.listing {
				w.informer.muted(ctx)
			}
			w.giveUp()
		case <-lasts.C:
			if !w.listing {
				w.informer.on((*state).last)
			}
		case <-catchUp.C:
			if !w.listing && !w.informer.caughtUp(ctx) {
				catchUp.Reset(catchUpPeriod)
			}
		case <-ended:
			return
		case <-stopped:
			return
		}
	}
}

// forward forwards an event, or handles it. It reports whether it ends the initial list.
func (w *watchProxy) forward(ctx context.Context, event watch.Event) (listed bool) {
	if event.Type == watch.Error {
		w.fail(ctx, event)
		return false
	}
	if !w.listing {
		w.heard = true
		w.informer.on((*state).hear)
		w.results <- event
		return false
	}
	version, listed := endOfList(event)
	if listed {
		w.informer.on(func(s *state) { s.list(version); s.open() })
	}
	w.results <- event
	if listed {
		w.listing, w.begin = false, time.Now().Add(shortWatch/2) // the informer has stored the list by then
	}
	return listed
}

// fail handles an error event. While a list is streamed, the informer decides what to do.
// Otherwise the next watch continues, unless the version is too old.
func (w *watchProxy) fail(ctx context.Context, event watch.Event) {
	err := apierrors.FromObject(event.Object)
	switch {
	case w.given || w.isStopped(ctx): // closing the response is an error of the decoder
	case w.listing && (isExpired(err) || isAhead(err)):
		w.listing, w.heard = false, true
		w.results <- event
	case isExpired(err):
		w.heard = true
		w.informer.on((*state).expire)
	default:
		w.informer.failed(ctx, err)
	}
	w.giveUp()
}

// giveUp ends the watch.
func (w *watchProxy) giveUp() {
	w.given = true
	w.Interface.Stop()
}

// isStopped reports whether the informer has stopped the watch.
func (w *watchProxy) isStopped(ctx context.Context) bool {
	select {
	case <-w.stopped:
		return true
	default:
		return ctx.Err() != nil
	}
}

// end records the end of the watch. If it is that of an incomplete list, the informer gets an
// error, so that it requests a list instead of another stream.
func (w *watchProxy) end(ctx context.Context) {
	if !w.listing {
		w.informer.ended(ctx, !w.heard && time.Since(w.begin) < shortWatch)
		return
	}
	if !w.isStopped(ctx) {
		w.informer.failed(ctx, errNoStream)
		w.results <- watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(errNoStream).ErrStatus}
	}
}

// endOfList returns the version of the list if the event ends it.
func endOfList(event watch.Event) (version string, ends bool) {
	object, err := meta.Accessor(event.Object)
	if err != nil || event.Type != watch.Bookmark || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return "", false
	}
	return object.GetResourceVersion(), true
}

// ResultChan implements watch.Interface.
func (w *watchProxy) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface. It returns when no more events are sent.
func (w *watchProxy) Stop() {
	w.stop()
	w.Interface.Stop()
	for range w.results { // drain events in flight
	}
}
