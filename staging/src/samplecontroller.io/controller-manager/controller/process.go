// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"
)

// Process is what the controllers of one process share. Package manager makes it. All fields
// must be set, but for those that say otherwise, and must not change afterwards.
type Process struct {
	// Config says how to reach the API server. It has no user agent, gate or timeout yet.
	// ContentType is what clients of built-in resources speak.
	Config      *restclient.Config
	ContentType string
	// UserAgent returns the user agent of a client by what the client is for.
	UserAgent func(name string) string
	// Gate lets writes pass while the process leads.
	Gate *leadership.Gate
	// Informers makes the informers.
	Informers *informers.Factory
	// Events is where Events go. Scheme knows the kinds that they are about.
	Events record.EventBroadcaster
	Scheme *runtime.Scheme
	// Namespace is the one that the controllers serve; empty: all.
	Namespace string
	// FeatureGates are those of the program.
	FeatureGates featuregate.FeatureGate
	// Workers has the number of workers by name of the controller.
	Workers map[string]int
	// SyncTimeout bounds each sync, WriteTimeout each request of a controller.
	SyncTimeout, WriteTimeout time.Duration
	// Resyncs says whether the informers resync.
	Resyncs bool
	// Metrics count what the controllers do.
	Metrics Metrics

	mutex       sync.Mutex
	writes      map[string]*writes.Transport
	consistency map[schema.GroupResource]*reconcile.ConsistencyStore
}

// Metrics are those of the controllers of a process.
type Metrics struct {
	Syncs       *reconcile.Metrics
	Undecodable *tolerant.Metrics
	Writes      *writes.Metrics
}

// context returns the context of one controller. The groups are those of the kinds whose
// statuses the controllers of the program write.
func (p *Process) context(d Descriptor, statusGroups sets.Set[string]) *Context {
	p.Metrics.Syncs.Prepare(d.Name)
	p.Metrics.Writes.Prepare(d.Name, writesAllowedBy(d.Rules)...)
	return &Context{process: p, name: d.Name, statusGroups: statusGroups}
}

// Denied says which permissions a controller lacks, and since when.
func (p *Process) Denied(name string) (why error, since time.Time) {
	denials := p.writesOf(name).Denied()
	if len(denials) == 0 {
		return nil, time.Time{}
	}
	first := slices.MinFunc(denials, func(a, b writes.Denial) int { return a.Since.Compare(b.Since) })
	return errors.New(writes.Summary(denials)), first.Since
}

// writesOf returns what all writes of a controller pass through, whichever of its clients
// sends them.
func (p *Process) writesOf(name string) *writes.Transport {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	transport := p.writes[name]
	if transport == nil {
		if p.writes == nil {
			p.writes = map[string]*writes.Transport{}
		}
		transport = writes.New(name, p.Metrics.Writes, leadership.ErrNotLeading)
		p.writes[name] = transport
	}
	return transport
}

func (p *Process) consistencyOf(resource schema.GroupResource) *reconcile.ConsistencyStore {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	store := p.consistency[resource]
	if store == nil {
		if p.consistency == nil {
			p.consistency = map[schema.GroupResource]*reconcile.ConsistencyStore{}
		}
		store = &reconcile.ConsistencyStore{}
		p.consistency[resource] = store
	}
	return store
}

// config returns how to reach the API server by the named client.
func (p *Process) config(name string) *restclient.Config {
	config := restclient.CopyConfig(p.Config)
	config.UserAgent = p.UserAgent(name)
	config.ContentType = p.ContentType
	config.Wrap(p.Gate.Wrap)
	return config
}
