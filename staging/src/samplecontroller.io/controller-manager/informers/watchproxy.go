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

// shortWatch is how long a watch must last that sends nothing. A shorter one the informer
// takes for one that has failed, and backs off.
const shortWatch = time.Second

// emptyWatch is the type of what client-go returns, without an error, for a watch that
// timed out or lost its connection before the API server answered.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// watchProxy is a watch that tells its informer when it gives a sign of life, and when it has
// sent the initial list.
type watchProxy struct {
	watch.Interface
	informer *informer
	results  chan watch.Event
	stopped  chan struct{}
	stop     func() // closes stopped
}

// newWatchProxy passes on what w sends, until w ends or is stopped.
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

// run passes on events. Where it would end the informer's watch with an error or too early,
// the informer would back off. So it has it end well, and watch again: then it learns what
// is so.
func (w *watchProxy) run(listing bool, begin time.Time) {
	defer close(w.results)
	for event := range w.Interface.ResultChan() {
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
			begin = time.Now().Add(shortWatch / 2) // when the informer has stored what was listed
		}
	}
	if !listing {
		w.wait(begin.Add(shortWatch))
	}
}

// endsList tells whether the bookmark comes after all that there was, and notes it.
func (w *watchProxy) endsList(bookmark watch.Event) bool {
	object, err := meta.Accessor(bookmark.Object)
	if err != nil || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return false
	}
	w.informer.setListed(ptr.To(object.GetResourceVersion()))
	w.informer.watches()
	return true
}

// wait waits until that time, or until nobody watches any more.
func (w *watchProxy) wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stopped:
	}
}

// ResultChan implements watch.Interface.
func (w *watchProxy) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface. It returns when nothing is sent any more.
func (w *watchProxy) Stop() {
	w.stop()
	w.Interface.Stop()
	for range w.results { // what was on its way
	}
}
