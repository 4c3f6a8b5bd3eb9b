// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
)

// namespacesWait is how long objects wait for the namespaces to be read, or for their own namespace to be in the
// cache. After that, the annotation is ignored until it is read.
const namespacesWait = 10 * time.Second

// errNamespacesUnknown postpones the reconcile of an object: its namespace may be paused.
var errNamespacesUnknown = fmt.Errorf("%w: the namespace is not yet read, and may be paused", reconcile.ErrStale)

// Whether namespaces can be read.
const (
	namespacesUnknown int32 = iota
	namespacesReadable
	namespacesUnreadable
)

// pausedNamespaces knows the pause annotation of each namespace. It reads only metadata, by a factory of its
// own: the program may read whole Namespaces, and neither elections nor readiness depend on this one.
type pausedNamespaces struct {
	shared   *Shared
	key      string // of the annotation
	factory  *informers.Factory
	store    cache.Store
	state    atomic.Int32
	waiting  atomic.Pointer[time.Time] // since when objects are postponed, nil if none is
	mutex    sync.Mutex
	reported map[string]string // the invalid value of each namespace that an Event has reported
	missing  *lru.Cache        // an absence by namespace
	live     liveNamespaces
}

// absence is when objects first and last waited for a namespace that the cache lacks.
type absence struct{ first, last time.Time }

// StartPauses begins to watch the pause annotations of namespaces. Call stop at the end. With Shared.Namespace
// it reads nothing, because a Role cannot permit to watch a namespace: then that annotation is ignored. So it is while
// the API server does not permit to read namespaces, or if it has not listed them 10 s after an object first waits.
func (s *Shared) StartPauses(ctx context.Context) (stop func(), err error) {
	if s.Program == "" {
		return func() {}, nil
	}
	if s.Namespace != "" {
		klog.FromContext(ctx).Info("Ignoring the pause annotation of the namespace, because --namespace is set: that of an object counts",
			"annotation", PauseAnnotation(s.Program))
		return func() {}, nil
	}
	client, err := metadata.NewForConfig(s.config("pause"))
	if err != nil {
		return nil, fmt.Errorf("reading the pause annotations of namespaces: %w", err)
	}
	n := &pausedNamespaces{shared: s, key: PauseAnnotation(s.Program), factory: informers.NewFactory(),
		reported: map[string]string{}, missing: lru.New(maxReported)}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	n.live.client = client.Resource(resource)
	informer := informers.InformerFor[*metav1.PartialObjectMetadata](n.factory, resource,
		n.live.client.Namespace(""), informers.WithTransform(n.trim))
	n.store = informer.GetStore()
	n.live.confirmed.owners = n.store
	if _, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[*metav1.PartialObjectMetadata]{
		AddFunc:    func(namespace *metav1.PartialObjectMetadata, _ bool) { n.changed(namespace, nil) },
		UpdateFunc: func(before, namespace *metav1.PartialObjectMetadata) { n.changed(namespace, before) },
		DeleteFunc: func(namespace cache.DeletedObject[*metav1.PartialObjectMetadata]) { n.forget(namespace.GetName()) },
	}, cache.HandlerOptions{}); err != nil {
		return nil, fmt.Errorf("reading the pause annotations of namespaces: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { n.follow(ctx) })
	n.factory.Start(klog.NewContext(ctx, logr.Discard())) // follow logs
	s.namespaces.Store(n)
	return func() {
		cancel()
		ended := make(chan struct{})
		go func() {
			running.Wait()
			n.factory.Shutdown()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Second): // a request that cannot be canceled must not delay the end of the process
		}
	}, nil
}

// trim is a transform. It keeps the name and the annotation.
func (n *pausedNamespaces) trim(obj any) (any, error) {
	namespace, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	kept := metav1.ObjectMeta{Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion}
	if value, ok := namespace.Annotations[n.key]; ok {
		kept.Annotations = map[string]string{n.key: value}
	}
	namespace.ObjectMeta = kept
	return namespace, nil
}

// annotation returns the value of the annotation of a namespace. It returns [reconcile.ErrStale] while that is
// not known.
func (n *pausedNamespaces) annotation(namespace string) (value string, ok bool, err error) {
	switch n.state.Load() {
	case namespacesUnknown:
		now := time.Now()
		n.waiting.CompareAndSwap(nil, &now)
		return "", false, errNamespacesUnknown
	case namespacesUnreadable:
		return "", false, nil
	}
	cached := n.get(namespace)
	if cached == noNamespace && n.mayCome(namespace) {
		return "", false, errNamespacesUnknown
	}
	value, ok = cached.Annotations[n.key]
	return value, ok, nil
}

// mayCome reports whether to wait for a namespace that the cache lacks although it has an object of it: each has its
// own watch. The wait ends, because a namespace whose finalizers somebody removed may leave objects behind.
func (n *pausedNamespaces) mayCome(namespace string) bool {
	now := time.Now()
	known, _ := n.missing.Get(namespace)
	a, ok := known.(absence)
	if !ok || now.Sub(a.last) > namespacesWait { // of an earlier namespace of that name
		a.first = now
	}
	a.last = now
	n.missing.Add(namespace, a)
	return now.Sub(a.first) < namespacesWait
}

var noNamespace = &metav1.PartialObjectMetadata{}

// get returns a namespace, noNamespace if it is not known.
func (n *pausedNamespaces) get(namespace string) *metav1.PartialObjectMetadata {
	live, isAhead := n.live.get(namespace)
	known := noNamespace
	if cached, found, err := n.store.GetByKey(namespace); err == nil && found {
		known = cached.(*metav1.PartialObjectMetadata)
	}
	if isAhead && isNewer(live, known) {
		return live
	}
	return known
}

func (n *pausedNamespaces) uid(namespace string) types.UID { return n.get(namespace).UID }

// isNews reports whether an invalid value of a namespace is not yet reported.
func (n *pausedNamespaces) isNews(namespace, invalid string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	before, known := n.reported[namespace]
	n.reported[namespace] = invalid
	return !known || before != invalid
}

// forget forgets the invalid value of a namespace, so that it is reported if it comes back.
func (n *pausedNamespaces) forget(namespace string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.reported, namespace)
}

// changed enqueues the objects of a namespace whose annotation has changed, or for which they wait, also because it was
// read before the cache had it.
func (n *pausedNamespaces) changed(namespace, before *metav1.PartialObjectMetadata) {
	value, ok := namespace.Annotations[n.key]
	p := newPause(value, "")
	if !ok || p == nil || !p.isInvalid {
		n.forget(namespace.Name)
	}
	isAwaited := n.live.caughtUp(namespace)
	if before == nil {
		before = noNamespace
		_, isMissing := n.missing.Get(namespace.Name)
		n.missing.Remove(namespace.Name)
		isAwaited = isAwaited || isMissing
	}
	if old, had := before.Annotations[n.key]; value == old && ok == had && !isAwaited {
		return
	}
	trigger := "namespace resumed"
	switch {
	case ok && p != nil:
		trigger = "namespace paused"
	case isAwaited:
		trigger = "namespace read"
	}
	n.shared.enqueueAll(namespace.Name, trigger)
}

// follow keeps the state until ctx ends.
func (n *pausedNamespaces) follow(ctx context.Context) {
	late := time.NewTimer(namespacesWait)
	defer late.Stop()
	isLate, wasDenied := false, false
	for {
		err, changed := n.factory.Served(n.store)
		if denied := isDenied(err); denied != wasDenied {
			isLate, wasDenied = false, denied
			late.Reset(namespacesWait)
		}
		n.update(ctx, err, isLate)
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			if wait := n.waits(); wait > 0 && !wasDenied {
				late.Reset(wait)
			} else {
				isLate = true
			}
		case <-changed:
		}
	}
}

// waits returns how long to wait for the first list before it is given up. Until an object waits, which may be long
// after the start, there is no haste.
func (n *pausedNamespaces) waits() time.Duration {
	if n.state.Load() != namespacesUnknown {
		return 0
	}
	if since := n.waiting.Load(); since != nil {
		return namespacesWait - time.Since(*since)
	}
	return time.Second
}

func isDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// areRead reports whether the cache holds all namespaces, and their watch works.
func (n *pausedNamespaces) areRead() bool {
	fails := func(r informers.Resource) bool { return !r.Served || r.Failure != nil }
	return n.state.Load() == namespacesReadable && !slices.ContainsFunc(n.factory.Resources(), fails)
}

// update sets the state. err is why the namespaces are not read, nil if they are. isLate is whether that has lasted for
// namespacesWait. Neither an interrupted watch nor a short denial, such as by an API server that starts, changes
// anything: the cache still holds what was last read.
func (n *pausedNamespaces) update(ctx context.Context, err error, isLate bool) {
	before, now := n.state.Load(), namespacesReadable
	if err != nil {
		wasRead := before != namespacesUnknown
		if wasRead && !(isDenied(err) && isLate) || !wasRead && !isDenied(err) && !isLate {
			return
		}
		now = namespacesUnreadable
	}
	if before == now {
		return
	}
	n.state.Store(now)
	logger := klog.FromContext(ctx)
	if now == namespacesUnreadable {
		logger.Error(err, "Ignoring the pause annotation of namespaces, because they cannot be read: that of an object counts",
			"annotation", n.key)
	} else if before == namespacesUnreadable {
		logger.Info("Namespaces can be read now: their pause annotation counts", "annotation", n.key)
	}
	if n.waiting.Swap(nil) != nil || before != namespacesUnknown {
		n.shared.enqueueAll("", "namespaces read")
	}
}
