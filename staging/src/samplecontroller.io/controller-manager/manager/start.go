// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/version"
)

// requestTimeout is the timeout of clients that neither watch nor belong to a controller.
const requestTimeout = 10 * time.Second

// start makes all parts of the process, and runs the program with the given configuration until ctx
// ends. The package comment describes the order of start and stop. A process can run one program at
// a time.
func (p Program) start(ctx context.Context, c *options.Config) error {
	metrics := metricsOf(p.Name)
	metrics.serving.Watch(c.Serving)
	metrics.shadow.Watch(c.DryRun)
	if c.DryRun.IsShadow() {
		ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "shadow", true))
	}
	shared, reconnect, err := p.newShared(ctx, c, metrics)
	if err != nil {
		return err
	}
	defer shared.Events.Shutdown()
	var stopTracing func()
	if shared.Tracing, stopTracing, err = p.startTracing(ctx, c.Tracing); err != nil {
		return err
	}
	defer stopTracing()
	if err := startEvents(ctx, shared); err != nil {
		return err
	}
	unwatch, err := watchNamespace(ctx, configFor(shared, "namespace"), c.Generic.Namespace)
	if err != nil {
		return err
	}
	defer unwatch()
	controllers, err := c.Controllers.Build(ctx, shared, c.Enabled)
	if err != nil {
		return err
	}
	disabled := sets.List(sets.New(c.Controllers.Names()...).Delete(c.Enabled...))
	klog.FromContext(ctx).Info("Built controllers", "enabled", c.Enabled, "disabled", disabled)
	controllers = p.buildSpare(ctx, c, shared, controllers)
	refuseUnbuilt(c, controllers)
	if err := refuseUnpausable(c, shared, controllers); err != nil {
		return err
	}
	election, err := p.election(ctx, c, shared, metrics.leadership, reconnect)
	if err != nil {
		return err
	}
	if c.Serving.SecureServing == nil {
		klog.FromContext(ctx).Info("Serving no probes and no metrics: --secure-port is 0")
	}
	supervision := supervisor.Options{
		ShutdownTimeout: c.Generic.ControllerShutdownTimeout,
		SyncTimeout:     c.Generic.SyncTimeout,
		Denied:          shared.Denied,
		Note:            shared.Note,
		Disabled:        disabled,
		Metrics:         metrics.states,
	}
	live := &liveConfig{options: c.Options, metrics: metrics.config}
	return run(ctx, parts{c, shared, controllers, supervision, election, live})
}

// election returns the leader election, nil for a process that does not take part in one.
func (p Program) election(ctx context.Context, c *options.Config, shared *controller.Shared, m *leadership.Metrics,
	reconnect func()) (*leadership.Election, error) {
	if c.DryRun != nil {
		return nil, nil
	}
	config := restclient.CopyConfig(c.ClientConfig) // with a connection of its own
	config.UserAgent = p.userAgent("leader-election")
	recorder := shared.Events.NewRecorder(shared.Scheme, corev1.EventSource{Component: p.Name})
	election, err := c.LeaderElection.Election(config, shared.Gate, recorder, m, reconnect)
	if err == nil && election == nil {
		klog.FromContext(ctx).Info("Leader election is off: run one replica only")
	}
	return election, err
}

// newShared returns the resources that the controllers share, and a function that makes their
// clients open new connections. It starts nothing.
func (p Program) newShared(ctx context.Context, c *options.Config, metrics *programMetrics) (shared *controller.Shared,
	reconnect func(), err error) {
	scheme := kuberuntime.NewScheme()
	if err := kubescheme.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	if p.Scheme != nil {
		if err := p.Scheme(scheme); err != nil {
			return nil, nil, fmt.Errorf("adding the kinds of %s to the scheme: %w", p.Name, err)
		}
	}
	factory := informers.NewFactory(informers.WithManagedFields(false))
	metrics.informers.Watch(factory)
	if c.DryRun != nil {
		c.ClientConfig.Wrap(plan.OnlyDryRuns) // inside of all other wrappers, so that no write passes without it
	}
	client, renew, err := connection.Renewable(c.ClientConfig)
	if err != nil {
		return nil, nil, err
	}
	reconnect = func() {
		klog.FromContext(ctx).Info("Opening new connections to the API server, because it does not answer")
		renew()
	}
	factory.OnHang(reconnect)
	shared = &controller.Shared{
		Program:   p.Name,
		Config:    client,
		UserAgent: p.userAgents(c),
		Gate:      c.LeaderElection.Gate(),
		Informers: factory,
		// Ignore the end of ctx, so that Events of the last syncs are still sent.
		Events:      record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx))),
		Scheme:      scheme,
		Namespace:   c.Generic.Namespace,
		Workers:     c.Workers.Of,
		SyncTimeout: c.Generic.SyncTimeout,
		Metrics:     *metrics.controllers,
		DryRun:      c.DryRun,
	}
	if c.DryRun == nil { // a plan has all deletions
		shared.MaxDeletionsPerMinute = c.Generic.MaxDeletionsPerMinute.Get
	}
	shared.PausedController = func(name string) (time.Time, bool) {
		until, ok := c.Generic.PausedControllers.Get().Until[name]
		return until, ok
	}
	shared.Metrics.Pauses.Watch(shared)
	if c.Generic.UseServiceAccountCredentials {
		// Ignore the end of ctx, so that the last syncs still get a token.
		if shared.Accounts, err = connection.NewAccounts(context.WithoutCancel(ctx), configFor(shared, "accounts"),
			c.LeaderElection.WriteTimeout); err != nil {
			return nil, nil, err
		}
	}
	return shared, reconnect, nil
}

// userAgents returns the function that returns the user agent of a controller's client.
func (p Program) userAgents(c *options.Config) func(purpose string) string {
	switch {
	case c.DryRun == nil:
		return p.userAgent
	case c.DryRun.IsShadow():
		return Program{Name: p.Name + "-shadow"}.userAgent
	default:
		return Program{Name: p.Name + "-plan"}.userAgent
	}
}

// userAgent returns the user agent of a client with this purpose.
func (p Program) userAgent(purpose string) string { return version.UserAgent(p.Name, purpose) }

// configFor returns the configuration of a client of the process itself. Its writes do not
// depend on the lead.
func configFor(shared *controller.Shared, name string) *restclient.Config {
	config := restclient.CopyConfig(shared.Config)
	config.UserAgent = shared.UserAgent(name)
	return config
}

// startEvents writes Events to the log and to the API. The log omits their messages, which may
// quote objects that its readers must not see.
func startEvents(ctx context.Context, shared *controller.Shared) error {
	logger := klog.FromContext(ctx)
	shared.Events.StartEventWatcher(func(e *corev1.Event) {
		object := klog.KRef(e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		logger.Info("Event occurred", "kind", e.InvolvedObject.Kind, "object", object, "type", e.Type, "reason", e.Reason)
	})
	if shared.DryRun != nil {
		return nil
	}
	config := configFor(shared, "events")
	config.Timeout = requestTimeout
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("starting Events: making client %s: %w", config.UserAgent, err)
	}
	shared.Events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events("")})
	return nil
}
