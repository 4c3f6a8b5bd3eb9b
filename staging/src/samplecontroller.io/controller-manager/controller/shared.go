// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Shared holds what the controllers of one process share. Package manager makes it. All
// fields must be set unless they say otherwise, and must not change afterwards.
type Shared struct {
	// Program is the name of the program. If it is empty, no annotation pauses an object.
	Program string
	// Config is the base configuration of all clients. Each gets a copy with its user agent, gate
	// and timeout. The content type is that of built-in resources. QPS and Burst limit each
	// controller, and all informers together; a QPS of 0 or less does not limit.
	Config *restclient.Config
	// UserAgent returns the user agent of the clients with this purpose: the name of a controller,
	// "informers" or another part of the program.
	UserAgent func(purpose string) string
	// Accounts makes each controller write as a ServiceAccount of its own. If nil, all write
	// with the credentials in Config.
	Accounts *connection.Accounts
	// Gate allows writes only while the process leads, and limits the time of each request of a
	// controller.
	Gate *leadership.Gate
	// Informers is the factory of the informers that all controllers share.
	Informers *informers.Factory
	// Events receives the Events. Scheme contains the kinds that they refer to.
	Events record.EventBroadcaster
	Scheme *runtime.Scheme
	// Namespace is the only namespace that the controllers serve; empty means all.
	Namespace string
	// Workers returns the number of workers of the named controller, at least 1.
	Workers func(name string) int
	// PausedController returns whether all objects of the named controller are paused, and until when; zero means
	// without end. It is called for each sync and each write: call [Shared.PauseChanged] after a change. If nil,
	// no controller is paused.
	PausedController func(name string) (until time.Time, paused bool)
	// SyncTimeout limits each sync; 0 means no limit.
	SyncTimeout time.Duration
	// MaxDeletionsPerMinute returns how many objects each controller may delete within a minute; 0 means no
	// limit, as does nil. See [ReasonDeletionsStopped].
	MaxDeletionsPerMinute func() int
	// Metrics are the metrics of the controllers.
	Metrics Metrics
	// Tracing provides the tracers of syncs and of the requests of controllers. If nil, nothing is traced.
	Tracing trace.TracerProvider
	// DryRun records what the controllers would write, in a process whose writes are all dry runs: Config must
	// have the wrapper [plan.OnlyDryRuns]. It is nil in a process that writes.
	DryRun *plan.Recorder

	enabled     []string // names of the controllers that are built
	mutex       sync.Mutex
	reporters   map[schema.GroupResource]*tolerant.Reporter
	writes      map[string]*writes.Transport
	limiters    map[string]flowcontrol.RateLimiter
	consistency map[schema.GroupResource]*reconcile.ConsistencyStore
	budgets     map[string]*budget
	resizable   map[string][]*reconcile.Loop // by controller; see WorkersChanged
	declared    map[string]declared
	mistakes    map[string]mistake
	notes       map[string]string                // by controller
	off         atomic.Pointer[sets.Set[string]] // the controllers that are switched off
	pausable    map[string][]pausable            // by controller
	namespaces  atomic.Pointer[pausedNamespaces]
}

// Metrics are the metrics of the controllers of a process.
type Metrics struct {
	// Syncs counts and times the syncs.
	Syncs *reconcile.Metrics
	// Objects counts the cached objects by state; nil counts none.
	Objects *ObjectMetrics
	// Deletions shows whose deletions are stopped; nil shows nothing.
	Deletions *DeletionMetrics
	// Pauses report what is paused; nil reports nothing.
	Pauses *PauseMetrics
	// Writes counts the requests that write.
	Writes *writes.Metrics
}

// context returns the context of one controller. statusGroups are the API groups of the kinds
// whose status is written by controllers of the program.
func (s *Shared) context(d Descriptor, statusGroups sets.Set[string]) *Context {
	s.Metrics.Syncs.Prepare(d.Name)
	b := s.budgetOf(d.Name)
	s.Metrics.Deletions.show(b)
	return &Context{shared: s, name: d.Name, statusGroups: statusGroups, declared: s.declare(d.Name), budget: b}
}

// declare returns where a controller declares what it needs.
func (s *Shared) declare(name string) declared {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.declared == nil {
		s.declared = map[string]declared{}
	}
	s.declared[name] = declared{}
	return s.declared[name]
}

// Denied returns why a controller cannot do its work, and since when: a mistake of the program, deletions that
// are stopped, or writes that cannot succeed, because of a missing permission, a subresource that is not
// served, or no token of its own account. It returns nil if there is nothing.
func (s *Shared) Denied(name string) (why error, since time.Time) {
	if m := s.mistakeOf(name); m.error != nil {
		return m.error, m.since
	}
	if why, since = s.budgetOf(name).state(); why != nil {
		return why, since
	}
	if s.Accounts != nil {
		if why, since = s.Accounts.Failure(name); why != nil {
			return why, since
		}
	}
	denials := s.writesOf(name).Denied()
	if len(denials) == 0 {
		return nil, time.Time{}
	}
	first := slices.MinFunc(denials, func(a, b writes.Denial) int { return a.Since.Compare(b.Since) })
	return errors.New(writes.Summary(denials)), first.Since
}

// writesOf returns the transport of all writes of a controller. Its clients share it.
func (s *Shared) writesOf(name string) *writes.Transport {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	transport := s.writes[name]
	if transport == nil {
		if s.writes == nil {
			s.writes = map[string]*writes.Transport{}
		}
		transport = writes.New(name, s.Metrics.Writes, leadership.ErrNotLeading, errSwitchedOff)
		if s.DryRun != nil {
			transport = writes.NewDryRun(name, leadership.ErrNotLeading, errSwitchedOff)
		}
		s.writes[name] = transport
	}
	return transport
}

func (s *Shared) consistencyOf(resource schema.GroupResource) *reconcile.ConsistencyStore {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	store := s.consistency[resource]
	if store == nil {
		if s.consistency == nil {
			s.consistency = map[schema.GroupResource]*reconcile.ConsistencyStore{}
		}
		store = &reconcile.ConsistencyStore{}
		s.consistency[resource] = store
	}
	return store
}

// config returns the configuration of the named clients, without the gate.
func (s *Shared) config(name string) *restclient.Config {
	config := restclient.CopyConfig(s.Config)
	config.UserAgent = s.UserAgent(name)
	if config.QPS > 0 {
		config.RateLimiter = s.limiterOf(name)
	}
	return config
}

// limiterOf returns the rate limiter that the named clients share. Without it, client-go would
// make one for each client, and so for each kind that a controller writes.
func (s *Shared) limiterOf(name string) flowcontrol.RateLimiter {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	limiter := s.limiters[name]
	if limiter == nil {
		if s.limiters == nil {
			s.limiters = map[string]flowcontrol.RateLimiter{}
		}
		limiter = flowcontrol.NewTokenBucketRateLimiter(s.Config.QPS, s.Config.Burst)
		s.limiters[name] = limiter
	}
	return limiter
}

// reporter returns the reporter of objects of a resource that cannot be decoded. All controllers of the
// resource share it, so that each object is reported once. The Events are those of the first one.
func (s *Shared) reporter(resource schema.GroupResource, recorder record.EventRecorder) *tolerant.Reporter {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.reporters == nil {
		s.reporters = map[schema.GroupResource]*tolerant.Reporter{}
	}
	if s.reporters[resource] == nil {
		s.reporters[resource] = tolerant.NewReporter(recorder)
	}
	return s.reporters[resource]
}
