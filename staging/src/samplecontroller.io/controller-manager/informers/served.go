// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// ErrNotSynced is why a resource does not count as served whose objects are not yet in
// the cache.
var ErrNotSynced = errors.New("not yet synced")

// Served tells whether the informers of the stores, which are what their GetStore returns,
// hold what the API server serves. Stores that are not of the factory are passed over.
//
// The error is nil if all do. Else it is the reason of one that does not: the API server's
// answer that it must not be read, for which [apierrors.IsForbidden] holds, before the
// answer that there is no such resource, [apierrors.IsNotFound], before [ErrNotSynced],
// which wraps the error of the last list if that failed. The channel is closed when the
// answer may be another.
func (f *Factory) Served(stores ...cache.Store) (err error, changed <-chan struct{}) {
	all := f.all()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, i := range all {
		if rank(i.err) > rank(err) && slices.Contains(stores, cache.Store(i.GetIndexer())) {
			err = i.reason()
		}
	}
	return err, f.changed
}

// Resource returns the name of the resource whose objects are in the store, empty if no
// informer of the factory fills it.
func (f *Factory) Resource(store cache.Store) string {
	for _, i := range f.all() {
		if store == cache.Store(i.GetIndexer()) {
			return i.resource.Resource
		}
	}
	return ""
}

// rank orders the reasons why a resource is not served: what must be done about the one
// of higher rank comes first.
func rank(err error) int {
	switch {
	case err == nil:
		return 0
	case apierrors.IsForbidden(err):
		return 3
	case apierrors.IsNotFound(err):
		return 2
	}
	return 1
}

// Resource is what a [Factory] knows of a resource that an informer reads.
type Resource struct {
	Resource schema.GroupVersionResource
	// Served tells whether the informer holds what the API server serves, Err why it does
	// not, as [Factory.Served] does, and Since is when that began.
	Served bool
	Err    error
	Since  time.Time
	// Failure is why the last list or watch failed, nil if the watch works. A resource
	// that is served can have one: then its cache grows old.
	Failure error
	// Objects is how many are in the cache.
	Objects int
	// LastSign is when the watch last gave a sign of life: when it was opened, sent an
	// event or, about once a minute, a bookmark. Zero: it never did.
	LastSign time.Time
}

// Name is the name of the resource and its API group, such as deployments.apps.
func (r Resource) Name() string { return r.Resource.GroupResource().String() }

// Resources returns what is known of all resources that were asked for, by name.
func (f *Factory) Resources() []Resource {
	var resources []Resource
	for _, i := range f.all() {
		r := i.state()
		r.Objects = len(i.GetStore().ListKeys())
		resources = append(resources, r)
	}
	return resources
}

// Versions returns the resourceVersion of each object in the cache of a resource.
func (f *Factory) Versions(resource schema.GroupVersionResource) map[cache.ObjectName]string {
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

// state returns what is known of the informer's resource but for the number of objects,
// which takes the longer to tell the more there are.
func (i *informer) state() Resource {
	r := Resource{Resource: i.resource}
	if sign := i.lastSign.Load(); sign > 0 {
		r.LastSign = i.factory.made.Add(time.Duration(sign))
	}
	i.factory.mutex.Lock()
	defer i.factory.mutex.Unlock()
	r.Served, r.Err, r.Since, r.Failure = i.err == nil, i.reason(), i.since, i.failure
	return r
}
