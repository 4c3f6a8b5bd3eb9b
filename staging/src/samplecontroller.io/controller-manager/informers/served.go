// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/testkit"
)

// ErrNotSynced is the reason for a resource whose objects are not yet in the cache.
var ErrNotSynced = errors.New("not yet synced")

// Served returns why the informers of the given stores do not hold what the API server serves. A
// store is what GetStore of an informer returns. Stores of other origin are ignored. Loops ask it:
// see reconcile.WithSources.
//
// The error is nil if all hold it. Otherwise it is the most important reason: first a missing
// permission, for which [apierrors.IsForbidden] holds, then an absent API,
// [apierrors.IsNotFound], then [ErrNotSynced], which wraps the error of the last list if
// that failed. The channel is closed when the result may have changed.
func (f *Factory) Served(stores ...cache.Store) (err error, changed <-chan struct{}) {
	all := f.all()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, i := range all {
		reason := i.state.reason(i.name())
		if rank(reason) > rank(err) && slices.Contains(stores, cache.Store(i.GetIndexer())) {
			err = reason
		}
	}
	return err, f.changed
}

// Resource returns the plural name of the resource whose objects are in the store, such as "pods",
// without its group. It is empty if no informer of the factory fills the store.
func (f *Factory) Resource(store cache.Store) string {
	for _, i := range f.all() {
		if store == cache.Store(i.GetIndexer()) {
			return i.resource.Resource
		}
	}
	return ""
}

// Resource is the state of a resource that an informer of a [Factory] reads.
type Resource struct {
	// Resource is the resource in the version that is read.
	Resource schema.GroupVersionResource
	// Served is whether the informer holds what the API server serves. Err is why not, as
	// [Factory.Served] returns it, nil if Served. Since is when Served or the kind of Err changed.
	Served bool
	Err    error
	Since  time.Time
	// Failure is why the last list or watch failed, nil if the watch works. A served
	// resource can have a Failure: then its cache becomes stale. Failure is also a transform
	// or index function that panics on an object in the cache.
	Failure error
	// Objects is the number of cached objects.
	Objects int
	// LastSign is the watch's last sign of life: it was opened, or sent an event or, about
	// once a minute, a bookmark. It is zero if there was none.
	LastSign time.Time
}

// Name returns the name of the resource and its API group, such as deployments.apps.
func (r Resource) Name() string { return r.Resource.GroupResource().String() }

// Resources returns the state of all requested resources, sorted by name, for status pages. It costs
// more than the other questions, because it counts the objects.
func (f *Factory) Resources() []Resource {
	var resources []Resource
	for _, i := range f.all() {
		r := i.report()
		r.Failure = cmp.Or(r.Failure, i.guard.check(i.GetStore()))
		r.Objects = len(i.GetStore().ListKeys())
		resources = append(resources, r)
	}
	return resources
}

func init() {
	testkit.Versions = func(factory any, resource schema.GroupVersionResource) map[cache.ObjectName]string {
		return factory.(*Factory).versions(resource)
	}
}

// versions returns the resourceVersion of each cached object of a resource.
func (f *Factory) versions(resource schema.GroupVersionResource) map[cache.ObjectName]string {
	versions := map[cache.ObjectName]string{}
	for _, i := range f.all() {
		if i.resource != resource {
			continue
		}
		for _, o := range i.GetStore().List() {
			if object, err := meta.Accessor(o); err == nil {
				versions[cache.MetaObjectToName(object)] = object.GetResourceVersion()
			}
		}
	}
	return versions
}

// Examples returns, for each requested resource, an empty object of the type that its source lists.
func (f *Factory) Examples() map[schema.GroupVersionResource]runtime.Object {
	examples := map[schema.GroupVersionResource]runtime.Object{}
	for _, i := range f.all() {
		examples[i.resource] = i.example
	}
	return examples
}

// report returns the state of the informer's resource without the number of objects, which
// is expensive to count.
func (i *informer) report() Resource {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	err := i.state.reason(i.name())
	return Resource{Resource: i.resource, Served: err == nil, Err: err, Since: i.state.since, Failure: i.state.failure(),
		LastSign: i.state.sign}
}

// follows reports whether the watch works, or another one may work.
func (i *informer) follows() bool {
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	return i.state.follows()
}

// silence describes a watch that does not work.
func (r Resource) silence() string {
	if errors.Is(r.Failure, errShortWatches) {
		return fmt.Sprintf("the watch of %s does not work: %v", r.Name(), r.Failure)
	}
	return fmt.Sprintf("the watch of %s has been silent since %s", r.Name(), r.LastSign.UTC().Format(time.RFC3339))
}
