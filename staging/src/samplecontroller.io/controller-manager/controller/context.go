// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	componenttracing "k8s.io/component-base/tracing"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/requests"
	"samplecontroller.io/controller-manager/internal/testkit"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// Context provides everything that one controller is made from. Its clients, recorder and
// loops have the controller's name, limits, metrics and leadership gate, like those of every
// controller of the process. Use it in the constructor; what it returns may be used later.
type Context struct {
	shared       *Shared
	name         string
	statusGroups sets.Set[string]
	declared     declared
	budget       *budget
	unfinished   int               // kinds that were given to For, but have no call of Reconcile yet
	loops        []*reconcile.Loop // of the kinds that have
	mistakes     []error           // in declarations after the call of Reconcile
}

// Name returns the name of the controller, which is also its field manager.
func (c *Context) Name() string { return c.name }

// Namespace returns the namespace that the program serves; empty means all. Sources of
// informers must not read other namespaces.
func (c *Context) Namespace() string { return c.shared.Namespace }

// Runs reports whether the named controller is enabled in this process.
func (c *Context) Runs(controller string) bool { return slices.Contains(c.shared.enabled, controller) }

// DryRun reports whether the process writes nothing, because it makes a plan or is a shadow. Then the writes of all
// clients from [Context.ClientConfig] are dry runs, finalizers' functions and sources of keys are not called, and no
// Events are sent. A controller must not change other systems then.
func (c *Context) DryRun() bool { return c.shared.DryRun != nil }

// StatusGroups returns the API groups of the kinds whose status is written by controllers of
// the program: by all that have it in their Rules, including disabled ones, and by those that have
// declared [MayPatchStatus] so far. All have declared it when informers start, so call it where it is
// needed, such as in a transform, and not in the constructor.
func (c *Context) StatusGroups() sets.Set[string] {
	return c.shared.declaredStatusGroups().Union(c.statusGroups)
}

// Informers returns the factory of informers. Pass it to [informers.InformerFor].
func (c *Context) Informers() *informers.Factory { return c.shared.Informers }

// ReadConfig returns the configuration for clients that informers read from. Controllers share
// informers, so its user agent is that of the informers and names no controller. Requests have no
// timeout, because watches must not end. A write fails: use [Context.ClientConfig] for it.
func (c *Context) ReadConfig() *restclient.Config {
	config := c.shared.config("informers")
	config.Wrap(refusing(requests.IsWrite, "clients from Context.ReadConfig cannot write: use Context.ClientConfig"))
	return config
}

// ClientConfig returns the configuration for the controller's own clients. Writes are counted,
// rejected unless the process leads, and sent with the credentials of the controller's own
// ServiceAccount if --use-service-account-credentials is set. Each request is limited to
// --write-timeout, except long writes: see [reconcile.WithLongWrite]. A watch
// would be cut off, so it fails: informers read with [Context.ReadConfig]. The content type is that of built-in
// resources; for custom resources see [tolerant.ClientFor].
func (c *Context) ClientConfig() *restclient.Config {
	config := c.shared.config(c.name)
	if config.RateLimiter != nil {
		config.RateLimiter = termLimiter{config.RateLimiter, c.shared.Gate}
	}
	if tracing := c.shared.Tracing; tracing != nil {
		config.Wrap(componenttracing.WrapperFor(tracing)) // inside of the gate, so that only what is sent has a span
	}
	config.Wrap(c.shared.Gate.WrapAll)
	config.Wrap(c.shared.whileOn(c.name))
	// The gate bounds each request, also to let a long write take longer. The sync timeout
	// bounds everything else.
	config.Timeout = max(c.shared.SyncTimeout, c.shared.Gate.WriteTimeout())
	if accounts := c.shared.Accounts; accounts != nil {
		config.Wrap(accounts.Wrap(c.name)) // outside of the checks above, which must follow the wait for a token
	}
	if dryRun := c.shared.DryRun; dryRun != nil {
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		config.Wrap(dryRun.Wrap(c.name)) // outside of the accounts, because it also reads
	}
	config.Wrap(c.writes().Wrap) // outside of the gate, to see the writes that it rejects
	config.Wrap(refusing(isWatch, "clients from Context.ClientConfig cannot watch, because their requests have a "+
		"timeout: use Context.ReadConfig"))
	config.Wrap(impatience{timeout: config.Timeout, patience: c.shared.Gate.WriteTimeout()}.wrap)
	return config
}

// refusal is a transport that answers some requests with an error. Without an answer, the API server
// would count as unreachable.
type refusal struct {
	http.RoundTripper
	refuses func(*http.Request) bool
	why     string
}

func refusing(refuses func(*http.Request) bool, why string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return refusal{next, refuses, why} }
}

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch && r.Method == http.MethodGet
}

// RoundTrip implements http.RoundTripper.
func (t refusal) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.refuses(r) {
		return t.RoundTripper.RoundTrip(r)
	}
	status := apierrors.NewBadRequest(t.why).Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		r.Body.Close() // as a RoundTripper must
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// writes returns the transport of all writes of the controller.
func (c *Context) writes() *writes.Transport { return c.shared.writesOf(c.name) }

// leading returns nil while the process leads and the controller is switched on, so that its writes are sent.
// Otherwise it returns the reason why they are not.
func (c *Context) leading() error {
	if c.shared.isOff(c.name) {
		return switchedOff(c.name)
	}
	return c.shared.Gate.Check()
}

func init() {
	testkit.Leading = func(context any) error { return context.(*Context).shared.Gate.Check() }
	testkit.SwitchedOff = func(context any, name string) bool { return context.(*Context).shared.isOff(name) }
	testkit.AllowDeletions = func(context any) {
		c := context.(*Context)
		c.shared.AllowDeletions(c.name, 10*time.Minute)
	}
	testkit.Denied = func(context any) error {
		c := context.(*Context)
		why, _ := c.shared.Denied(c.name)
		return why
	}
}

// ConsistencyStore returns the store of the versions that the controllers of the process have
// written for the objects that keys of a resource name: for the dependents of Foos, too, the resource
// is foos. All controllers share one store per resource, so that each waits for the writes of the
// others. Give it to the loop of these keys by [reconcile.WithConsistencyStore]. Controllers made by
// [For] have it.
func (c *Context) ConsistencyStore(resource schema.GroupResource) *reconcile.ConsistencyStore {
	return c.shared.consistencyOf(resource)
}

// Recorder returns a recorder of Events whose source is the controller. An Event about an object of a
// kind that is not in the scheme, or of another type than Normal and Warning, is lost, and the
// controller is Degraded.
func (c *Context) Recorder() record.EventRecorder { return c.recorder(c.name) }

func (c *Context) recorder(source string) record.EventRecorder {
	return &recorder{c.shared.Events.NewRecorder(c.shared.Scheme, corev1.EventSource{Component: source}), c}
}

// RecorderFor returns a recorder whose source is the name of the controller, a dash and purpose.
// The recorder drops Events if a source sends many of one type about one object. So Events that
// may be many do not displace others if they have a source of their own.
func (c *Context) RecorderFor(purpose string) record.EventRecorder {
	return c.recorder(c.name + "-" + purpose)
}

// tracerName is the instrumentation scope of the spans of syncs.
const tracerName = "samplecontroller.io/controller-manager/reconcile"

// Loop returns a loop, which is a controller, that calls sync for each key that its watches
// enqueue. Add watches with [reconcile.WatchSelf] and [reconcile.Watch]. It has the metrics, the
// timeout and the number of workers that the flags set, and pauses while an API that it reads is
// unavailable. opts can change all but the metrics: an observer in opts is added to that of these.
func (c *Context) Loop(sync reconcile.SyncFunc, opts ...reconcile.Option) *reconcile.Loop {
	const unset = -1
	all := []reconcile.Option{
		reconcile.WithWorkers(unset),
		reconcile.WithObserver(c.shared.Metrics.Syncs.Observe),
		reconcile.WithTimeout(c.shared.SyncTimeout),
		reconcile.WithSources(c.shared.Informers),
	}
	if c.shared.Tracing != nil {
		all = append(all, reconcile.WithTracer(c.shared.Tracing.Tracer(tracerName)))
	}
	if c.shared.DryRun != nil {
		all = append(all, reconcile.WithPlanner(c.shared.DryRun))
	}
	loop := reconcile.New(c.name, sync, append(all, opts...)...)
	if loop.Workers() == unset {
		c.shared.setsWorkersOf(c.name, loop)
	}
	return loop
}
