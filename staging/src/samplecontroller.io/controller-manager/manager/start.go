// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/options"
	"samplecontroller.io/controller-manager/supervisor"
)

// requestTimeout is for clients that neither watch nor belong to a controller.
const requestTimeout = 10 * time.Second

// Run runs the program with what its options have come to, until ctx ends. It makes all that
// the process consists of; the order of start and stop is described in the package comment.
// A process can run one program at a time.
func Run(ctx context.Context, p Program, c *options.Config) error {
	klog.FromContext(ctx).Info("Starting "+p.Name, "version", version.Get().GitVersion)
	removePage, err := p.serveConfigz(c)
	if err != nil {
		return err
	}
	defer removePage()
	metrics := metricsOf(p.Name)
	shared, err := p.process(ctx, c, metrics)
	if err != nil {
		return err
	}
	defer shared.Events.Shutdown()
	if err := startEvents(ctx, shared); err != nil {
		return err
	}
	allowed := c.Controllers.AllowedBy(c.FeatureGates, c.Enabled)
	controllers, err := c.Controllers.Build(ctx, shared, allowed)
	if err != nil {
		return err
	}
	recorder := shared.Events.NewRecorder(shared.Scheme, corev1.EventSource{Component: p.Name})
	election, err := c.LeaderElection.Election(configFor(shared, "leader-election"), shared.Gate, recorder, metrics.leadership)
	if err != nil {
		return err
	}
	return run(ctx, process{
		Registry:    c.Controllers,
		Informers:   shared.Informers,
		Controllers: controllers,
		Supervision: supervisor.Options{
			StartInterval:   c.ControllerStartInterval,
			ShutdownTimeout: c.ControllerShutdownTimeout,
			Thresholds:      supervisor.Thresholds{RunningSync: 2 * c.SyncTimeout, StuckSync: 10 * c.SyncTimeout},
			Denied:          shared.Denied,
			Disabled:        sets.List(sets.New(c.Controllers.Names()...).Delete(allowed...)),
			Metrics:         metrics.states,
		},
		Election:    election,
		Gate:        shared.Gate,
		WarmStandby: c.WarmStandby,
		Namespace:   c.Namespace,
		Server:      c.Server,
	})
}

// process returns what the controllers share. Nothing is started.
func (p Program) process(ctx context.Context, c *options.Config, metrics *Metrics) (*controller.Process, error) {
	scheme := kuberuntime.NewScheme()
	if err := kubescheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if p.Scheme != nil {
		if err := p.Scheme(scheme); err != nil {
			return nil, fmt.Errorf("adding the kinds of %s to the scheme: %w", p.Name, err)
		}
	}
	handle := informers.NewFactory(informers.WithResync(resyncPeriod(c.MinResyncPeriod)), informers.WithTransform(dropManagedFields))
	metrics.informers.Watch(handle)
	return &controller.Process{
		Config:      c.Client,
		ContentType: c.ContentType,
		UserAgent:   p.userAgent,
		Gate:        c.LeaderElection.Gate(metrics.leadership),
		Informers:   handle,
		// It is not bound to the end of ctx: what the last syncs report is still sent.
		Events:       record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx))),
		Scheme:       scheme,
		Namespace:    c.Namespace,
		FeatureGates: c.FeatureGates,
		Workers:      c.Workers,
		SyncTimeout:  c.SyncTimeout,
		WriteTimeout: c.LeaderElection.WriteTimeout,
		Resyncs:      c.MinResyncPeriod > 0,
		Metrics:      *metrics.controllers,
	}, nil
}

// userAgent has the form that client-go gives it, with the program's name first whatever
// its file is called, and at the end what the client is for: the audit log tells clients
// apart by it.
func (p Program) userAgent(name string) string {
	v := version.Get()
	return fmt.Sprintf("%s/%s (%s/%s) %.7s/%s", p.Name, v.GitVersion, runtime.GOOS, runtime.GOARCH, v.GitCommit, name)
}

// configFor returns how a client of the process itself reaches the API server: its writes
// pass whether the process leads or not.
func configFor(shared *controller.Process, name string) *restclient.Config {
	config := restclient.CopyConfig(shared.Config)
	config.UserAgent = shared.UserAgent(name)
	return config
}

// startEvents starts writing Events to the log and to the API. The log gets no messages,
// which may quote the object: they are for those who may read it.
func startEvents(ctx context.Context, shared *controller.Process) error {
	config := configFor(shared, "events")
	config.Timeout, config.ContentType = requestTimeout, shared.ContentType
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("starting Events: making client %s: %w", config.UserAgent, err)
	}
	logger := klog.FromContext(ctx)
	shared.Events.StartEventWatcher(func(e *corev1.Event) {
		object := klog.KRef(e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		logger.Info("Event occurred", "kind", e.InvolvedObject.Kind, "object", object, "type", e.Type, "reason", e.Reason)
	})
	shared.Events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events("")})
	return nil
}

// resyncPeriod returns a period between least and twice least, so that the
// processes of a cluster do not resync in step.
func resyncPeriod(least time.Duration) time.Duration {
	return least + time.Duration(rand.Float64()*float64(least))
}

// dropManagedFields drops from cached objects what takes the most room and nobody reads.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
