// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// liveNamespaces reads each namespace once in a term, before the first write in it.
//
// A pause of a namespace does not change the objects in it, so the resourceVersion in a write does not protect
// them. The cache of a new leader may lack a pause that its predecessor has already reported. The new leader would set
// back what was changed since. Within a term, the condition Paused is written only when the cache has the pause.
type liveNamespaces struct {
	client metadata.Getter
	// confirmed has the namespaces that were read in this term, and ends the reads once the cache has caught up.
	confirmed confirmations
	mutex     sync.Mutex
	// ahead has the paused namespaces that the cache does not show as paused yet, until the cache has changed. It may
	// never show the pause, but only its end.
	ahead map[string]liveNamespace
}

type liveNamespace struct {
	namespace *metav1.PartialObjectMetadata
	version   string // of the API server when it was read
}

// wasRead stands for the UID of a namespace in confirmations: it may not exist.
const wasRead = "read"

// beginNamespaces begins a term.
func (s *Shared) beginNamespaces() {
	if n := s.namespaces.Load(); n != nil {
		n.live.confirmed.begin()
	}
}

// confirmNamespace returns an error if the object is paused, or if it is not known whether its namespace is. A status
// with conditions needs no read, unless it says that the object is resumed: the version of the object protects it
// once it has the condition Paused.
func (r *Request[T]) confirmNamespace(ctx context.Context, w write) error {
	b, n := r.builder, r.builder.context.shared.namespaces.Load()
	isStatus := w.own && w.status && !r.resuming && b.conditions != nil
	if n != nil && r.found && !r.pausing && !isStatus && !b.resource.cluster && !b.resource.dryRun &&
		r.object.GetDeletionTimestamp() == nil {
		if err := n.confirm(ctx, r.key.Namespace); err != nil {
			return err
		}
	}
	return r.isPausedNow() // the pause may have arrived during the confirmations
}

// confirm reads a namespace from the API server if that is needed. It lists one namespace instead of getting it,
// because the watch needs the permission to list anyway. While that is denied, only the cache counts. Like other reads
// of a sync, it has as much time as a write, so that it does not delay the end of a term.
func (n *pausedNamespaces) confirm(ctx context.Context, name string) error {
	key := cache.NewObjectName("", name)
	if n.state.Load() != namespacesReadable || n.live.confirmed.has(key, wasRead) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.shared.Gate.WriteTimeout())
	defer cancel()
	list, err := n.live.client.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if isDenied(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the pause annotation of namespace %s: %w", name, err)
	}
	for i := range list.Items {
		namespace := &list.Items[i]
		value, ok := namespace.Annotations[n.key]
		if namespace.Name == name && ok && newPause(value, "") != nil && isNewer(namespace, n.get(name)) {
			klog.FromContext(ctx).V(2).Info("Namespace is paused, which the cache does not show yet", "namespace", name)
			n.live.add(namespace, list.ResourceVersion)
		}
	}
	n.live.confirmed.add(key, wasRead, list.ResourceVersion)
	return nil
}

// isNewer reports whether a namespace is newer than the known one.
func isNewer(namespace, known *metav1.PartialObjectMetadata) bool {
	if known == noNamespace {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(namespace.ResourceVersion, known.ResourceVersion)
	return err == nil && order > 0
}

func (l *liveNamespaces) add(namespace *metav1.PartialObjectMetadata, version string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ahead == nil {
		l.ahead = map[string]liveNamespace{}
	}
	l.ahead[namespace.Name] = liveNamespace{namespace, version}
}

// get returns a namespace as read from the API server, if the cache has not reached that version. ok is false if it
// has. Read the cache after this call.
func (l *liveNamespaces) get(name string) (namespace *metav1.PartialObjectMetadata, ok bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	ahead, ok := l.ahead[name]
	return ahead.namespace, ok && !hasReached(l.confirmed.owners, ahead.version)
}

// caughtUp reports whether the cache was behind with a namespace, and is no longer.
func (l *liveNamespaces) caughtUp(cached *metav1.PartialObjectMetadata) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	ahead, ok := l.ahead[cached.Name]
	if !ok || isNewer(ahead.namespace, cached) {
		return false
	}
	delete(l.ahead, cached.Name)
	return true
}
