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
	"k8s.io/client-go/util/flowcontrol"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"
)

// Process holds what the controllers of one process share. Package manager makes it. All
// fields must be set unless they say otherwise, and must not change afterwards.
type Process struct {
	// Config is the base configuration of all clients. It has no user agent, gate or timeout
	// yet. Its content type is that of built-in resources. Its rate limit is for each
	// controller, and one for all informers.
	Config *restclient.Config
	// UserAgent returns the user agent of a client with this purpose.
	UserAgent func(name string) string
	// Accounts makes each controller write as a ServiceAccount of its own. If nil, all write
	// with the credentials in Config.
	Accounts *connection.Accounts
	// Gate allows writes only while the process leads.
	Gate *leadership.Gate
	// Informers is the factory of informers.
	Informers *informers.Factory
	// Events receives the Events. Scheme contains the kinds that they refer to.
	Events record.EventBroadcaster
	Scheme *runtime.Scheme
	// Namespace is the only namespace that the controllers serve; empty means all.
	Namespace string
	// Workers maps the name of a controller to its number of workers.
	Workers map[string]int
	// SyncTimeout limits each sync. WriteTimeout limits each request of a controller, and must
	// be that of the gate.
	SyncTimeout, WriteTimeout time.Duration
	// Metrics are the metrics of the controllers.
	Metrics Metrics

	enabled     []string // names of the controllers that are built
	mutex       sync.Mutex
	reporters   map[schema.GroupResource]*tolerant.Reporter
	writes      map[string]*writes.Transport
	limiters    map[string]flowcontrol.RateLimiter
	consistency map[schema.GroupResource]*reconcile.ConsistencyStore
	declared    map[string]declared
	mistakes    map[string]mistake
	notes       map[string]string // by controller
}

// Metrics are the metrics of the controllers of a process.
type Metrics struct {
	Syncs   *reconcile.Metrics
	Objects *ObjectMetrics
	Writes  *writes.Metrics
}

// context returns the context of one controller. statusGroups are the API groups of the kinds
// whose status is written by controllers of the program.
func (p *Process) context(d Descriptor, statusGroups sets.Set[string]) *Context {
	p.Metrics.Syncs.Prepare(d.Name)
	return &Context{process: p, name: d.Name, statusGroups: statusGroups, declared: p.declare(d.Name)}
}

// declare returns where a controller declares what it needs.
func (p *Process) declare(name string) declared {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.declared == nil {
		p.declared = map[string]declared{}
	}
	p.declared[name] = declared{}
	return p.declared[name]
}

// Denied returns why a controller cannot do its work, and since when: a mistake of the program, or
// writes that cannot succeed, because of a missing permission, a subresource that is not served, or no
// token of its own account.
func (p *Process) Denied(name string) (why error, since time.Time) {
	if m := p.mistakeOf(name); m.error != nil {
		return m.error, m.since
	}
	if p.Accounts != nil {
		if why, since = p.Accounts.Failure(name); why != nil {
			return why, since
		}
	}
	denials := p.writesOf(name).Denied()
	if len(denials) == 0 {
		return nil, time.Time{}
	}
	first := slices.MinFunc(denials, func(a, b writes.Denial) int { return a.Since.Compare(b.Since) })
	return errors.New(writes.Summary(denials)), first.Since
}

// writesOf returns the transport of all writes of a controller. Its clients share it.
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

// config returns the configuration of the named clients, without the gate.
func (p *Process) config(name string) *restclient.Config {
	config := restclient.CopyConfig(p.Config)
	config.UserAgent = p.UserAgent(name)
	if config.QPS > 0 {
		config.RateLimiter = p.limiterOf(name)
	}
	return config
}

// limiterOf returns the rate limiter that the named clients share. Without it, client-go would
// make one for each client, and so for each kind that a controller writes.
func (p *Process) limiterOf(name string) flowcontrol.RateLimiter {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	limiter := p.limiters[name]
	if limiter == nil {
		if p.limiters == nil {
			p.limiters = map[string]flowcontrol.RateLimiter{}
		}
		limiter = flowcontrol.NewTokenBucketRateLimiter(p.Config.QPS, p.Config.Burst)
		p.limiters[name] = limiter
	}
	return limiter
}

// reporter returns the reporter of objects of a resource that cannot be decoded. All controllers of the
// resource share it, so that each object is reported once. The Events are those of the first one.
func (p *Process) reporter(resource schema.GroupResource, recorder record.EventRecorder) *tolerant.Reporter {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.reporters == nil {
		p.reporters = map[schema.GroupResource]*tolerant.Reporter{}
	}
	if p.reporters[resource] == nil {
		p.reporters[resource] = tolerant.NewReporter(recorder)
	}
	return p.reporters[resource]
}
