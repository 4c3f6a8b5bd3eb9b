// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// shortWatch is how long a watch without events must last. The informer treats a shorter
// one as failed and backs off.
const shortWatch = time.Second

// emptyWatch is the type of the watch that client-go returns, without an error, when a watch
// request timed out or lost its connection before the response.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// watchProxy is a watch that reports its signs of life, and the end of the initial list, to
// its informer.
type watchProxy struct {
	watch.Interface
	informer *informer
	results  chan watch.Event
	stopped  chan struct{}
	stop     func() // closes stopped
}

// newWatchProxy forwards the events of w until w ends or is stopped.
func newWatchProxy(w watch.Interface, i *informer, listsFirst bool) *watchProxy {
	p := &watchProxy{Interface: w, informer: i, results: make(chan watch.Event), stopped: make(chan struct{})}
	p.stop = sync.OnceFunc(func() { close(p.stopped) })
	if reflect.TypeOf(w) != emptyWatch {
		i.sign()
		if !listsFirst {
			i.watches()
		}
	}
	go p.run(listsFirst, time.Now())
	return p
}

// run forwards events. The informer would back off after a watch that ends with an error or
// too early. So run ends such a watch normally, and the informer opens a new one, which
// shows the current state.
func (w *watchProxy) run(listing bool, begin time.Time) {
	defer close(w.results)
	silent := !listing
	for event := range w.Interface.ResultChan() {
		silent = false
		w.informer.sign()
		if !listing && event.Type == watch.Error && isExpired(apierrors.FromObject(event.Object)) {
			w.informer.setListed(nil)
			w.Interface.Stop()
			continue
		}
		listed := listing && event.Type == watch.Bookmark && w.endsList(event)
		w.results <- event
		if listed {
			listing = false
			begin = time.Now().Add(shortWatch / 2) // the informer has stored the list by then
		}
	}
	if silent && time.Since(begin) > maxSilence {
		// Not even a bookmark: etcd was restored from a backup, and has not reached the version
		// that the watch began at. The next watch would begin there, too, so list instead.
		w.informer.setListed(nil)
	}
	if !listing {
		select {
		case <-time.After(time.Until(begin.Add(shortWatch))):
		case <-w.stopped:
		}
	}
}

// endsList reports whether the bookmark ends the initial list, and records that.
func (w *watchProxy) endsList(bookmark watch.Event) bool {
	object, err := meta.Accessor(bookmark.Object)
	if err != nil || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return false
	}
	w.informer.setListed(ptr.To(object.GetResourceVersion()))
	w.informer.watches()
	return true
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
