// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// refusalLimit is how long a late cache is waited for. It may never come to know
// more if its watch is broken, or if the refusal had another reason.
const refusalLimit = 30 * time.Second

// refusals remembers for which versions of Foos the API server has refused a
// status: it has others, or the Foo is gone, and the cache is late. Whatever else is
// decided on such a version is late as well. The worst would be a Deployment for a
// Foo that is gone: the garbage collector takes it away, which would wake the Foo,
// and so on until the cache has caught up.
type refusals struct {
	mutex sync.Mutex
	byKey map[cache.ObjectName]refusal
}

type refusal struct {
	resourceVersion string
	until           time.Time
}

// note notes that the API server has refused a status of this version.
func (r *refusals) note(key cache.ObjectName, resourceVersion string, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.byKey == nil {
		r.byKey = map[cache.ObjectName]refusal{}
	}
	r.byKey[key] = refusal{resourceVersion, now.Add(refusalLimit)}
}

// late tells whether the version that is cached now, "" for none, is one for which a
// status was refused. It forgets what does not matter any more.
func (r *refusals) late(key cache.ObjectName, resourceVersion string, now time.Time) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	refusal, ok := r.byKey[key]
	if ok && refusal.resourceVersion == resourceVersion && now.Before(refusal.until) {
		return true
	}
	delete(r.byKey, key)
	return false
}
