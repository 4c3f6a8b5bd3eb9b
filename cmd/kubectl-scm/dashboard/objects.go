// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// bookmarks is how often the API server sends a sign of life to a watch.
const bookmarks = time.Minute

// objects are the objects of one kind, as a watch sees them. It is safe for concurrent use.
type objects struct {
	kind cluster.Kind

	mutex    sync.Mutex
	byKey    map[string]*cluster.Object // the objects themselves do not change
	complete bool
	heard    reading[struct{}]
}

func newObjects(kind cluster.Kind) *objects {
	return &objects{kind: kind, byKey: map[string]*cluster.Object{}, heard: reading[struct{}]{Interval: bookmarks}}
}

// watcher returns what keeps the objects up to date.
func (o *objects) watcher() cluster.Watcher {
	locked := func(change func()) {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		change()
	}
	return cluster.Watcher{
		Changed:  func(object cluster.Object) { locked(func() { o.byKey[object.Key()] = &object }) },
		Deleted:  func(object cluster.Object) { locked(func() { delete(o.byKey, object.Key()) }) },
		Complete: func() { locked(func() { o.complete = true }) },
		Heard:    func() { locked(func() { o.heard.succeeded(struct{}{}, time.Now()) }) },
		Failed:   func(err error) { locked(func() { o.heard.Err = err }) },
	}
}

// state returns how fresh the objects are, and whether all are known.
func (o *objects) state() (heard reading[struct{}], complete bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.heard, o.complete
}

// count returns how many objects there are, and how many of them are not Ready.
func (o *objects) count() (all, broken int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, object := range o.byKey {
		if !object.Ready() {
			broken++
		}
	}
	return len(o.byKey), broken
}

// get returns an object.
func (o *objects) get(namespace, name string) (cluster.Object, bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if object := o.byKey[namespace+"/"+name]; object != nil {
		return *object, true
	}
	return cluster.Object{}, false
}

// States of objects that a filter selects.
const (
	broken = "broken"
	paused = "paused"
)

// filter selects objects. Empty fields select all.
type filter struct {
	// Kind is the alias of a controller, Reason that of a condition, and Text a part of namespace/name or of the
	// message.
	Kind, Reason, Text string
	// State is broken, for objects that are not Ready, or paused; anything else selects all.
	State string
}

func (f filter) matches(o *cluster.Object) bool {
	if f.State == broken && o.Ready() || f.State == paused && o.Paused == "" {
		return false
	}
	return (f.Reason == "" || f.Reason == o.Reason) &&
		(f.Text == "" || strings.Contains(o.Key(), f.Text) || strings.Contains(o.Message, f.Text))
}

// each calls visit with the objects that a filter selects, in no order.
func each(kinds []*objects, f filter, visit func(*cluster.Object)) {
	for _, o := range kinds {
		if f.Kind != "" && f.Kind != o.kind.Controller {
			continue
		}
		o.mutex.Lock()
		for _, object := range o.byKey {
			if f.matches(object) {
				visit(object)
			}
		}
		o.mutex.Unlock()
	}
}

// find returns the objects that a filter selects: first those that are not Ready, the longest first.
func find(kinds []*objects, f filter) []*cluster.Object {
	var found []*cluster.Object
	each(kinds, f, func(object *cluster.Object) { found = append(found, object) })
	slices.SortFunc(found, func(a, b *cluster.Object) int {
		if a.Ready() != b.Ready() {
			return map[bool]int{true: 1, false: -1}[a.Ready()]
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.Kind, b.Kind))
	})
	return found
}

// reasons returns the reasons of all objects, sorted.
func reasons(kinds []*objects) []string {
	seen := map[string]bool{}
	each(kinds, filter{}, func(object *cluster.Object) {
		if object.Reason != "" {
			seen[object.Reason] = true
		}
	})
	return slices.Sorted(maps.Keys(seen))
}
