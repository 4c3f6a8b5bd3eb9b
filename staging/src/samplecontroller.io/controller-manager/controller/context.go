// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
)

// Context is what one controller is made from. All that it returns bears the controller's
// name, where it has one, and is counted, bounded and bound to the lead as for every
// controller of the process.
type Context struct {
	process      *Process
	name         string
	statusGroups sets.Set[string]
}

// Name returns the name of the controller, which is also its field manager.
func (c *Context) Name() string { return c.name }

// Namespace returns the namespace that the program serves, empty for all. Sources of
// informers must read no other.
func (c *Context) Namespace() string { return c.process.Namespace }

// Enabled tells whether a feature gate is on.
func (c *Context) Enabled(feature featuregate.Feature) bool {
	return c.process.FeatureGates.Enabled(feature)
}

// StatusGroups returns the API groups of the kinds whose statuses the controllers of the
// program write, whether they are enabled or not.
func (c *Context) StatusGroups() sets.Set[string] { return c.statusGroups.Clone() }

// Informers returns what makes informers: see [informers.InformerFor].
func (c *Context) Informers() *informers.Factory { return c.process.Informers }

// ReadConfig is for the clients that informers read from. Controllers share informers, so
// it has no name of theirs. Requests have no timeout, because watches must not end.
func (c *Context) ReadConfig() *restclient.Config { return c.process.config("informers") }

// ClientConfig is for the clients of the controller. A write passes only while the process
// leads, and is counted. Each request ends after --write-timeout, so a watch would end as
// soon. It speaks the content type of built-in resources; see [tolerant.ClientFor] for
// custom resources.
func (c *Context) ClientConfig() *restclient.Config {
	config := c.process.config(c.name)
	config.Timeout = c.process.WriteTimeout
	config.Wrap(c.Writes().Wrap) // outside of the gate: it sees what that refuses
	return config
}

// Writes returns what all writes of the controller pass through. It is told which writes
// were not needed.
func (c *Context) Writes() *writes.Transport { return c.process.writesOf(c.name) }

// Leading returns nil while the process leads, so that a write of the controller would be
// sent, and else why it would not.
func (c *Context) Leading() error { return c.process.Gate.Check() }

// ConsistencyStore returns what the controllers of the process have written to a resource. All
// callers for the resource share it, so that each waits for the writes of the others.
func (c *Context) ConsistencyStore(resource schema.GroupResource) *reconcile.ConsistencyStore {
	return c.process.consistencyOf(resource)
}

// Recorder returns a recorder of Events whose source is the controller.
func (c *Context) Recorder() record.EventRecorder {
	return c.process.Events.NewRecorder(c.process.Scheme, corev1.EventSource{Component: c.name})
}

// CountUndecodable counts the objects of the informer that cannot be decoded as those of the
// controller. It adds an index to the informer, so only one controller can count them.
func (c *Context) CountUndecodable(informer cache.SharedIndexInformer) error {
	return c.process.Metrics.Undecodable.Watch(c.name, informer)
}

// LoopOptions returns how each loop of the controller works: counted, bounded in time, and
// paused while what it reads is unavailable.
func (c *Context) LoopOptions() []reconcile.Option {
	return []reconcile.Option{
		reconcile.WithWorkers(c.process.Workers[c.name]),
		reconcile.WithObserver(c.process.Metrics.Syncs.Observe),
		reconcile.WithResyncs(c.process.Resyncs),
		reconcile.WithTimeout(c.process.SyncTimeout),
		reconcile.WithSources(c.process.Informers),
		reconcile.WithAdaptiveWorkers(c.process.WriteTimeout),
	}
}

// Loop returns a loop, which is a controller, that calls sync for each key that its watches
// enqueue: add them with [reconcile.For] and [reconcile.Watch]. Options come after those of
// [Context.LoopOptions].
func (c *Context) Loop(sync reconcile.SyncFunc, opts ...reconcile.Option) *reconcile.Loop {
	return reconcile.New(c.name, sync, append(c.LoopOptions(), opts...)...)
}
