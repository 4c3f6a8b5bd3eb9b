// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
)

// ControllerContext is what constructors make their controllers from.
type ControllerContext struct {
	// Informers makes the informers. Of Foos, Icecreams, Deployments and what is between
	// these and their Pods only the methods of this type ask it, for they read from the
	// sources.
	Informers *informers.Handle
	sources   sources

	// What is written to Foos and to Icecreams, by whichever controller.
	writtenFoos, writtenIcecreams *reconcile.Written

	clients
	events record.EventBroadcaster
	config *config.CompletedConfig
}

// newControllerContext returns the context of a process that has the controllers of the
// registry. Nothing is started.
func newControllerContext(registry *controller.Registry[*ControllerContext], clients clients, events record.EventBroadcaster) (*ControllerContext, error) {
	c := clients.CompletedConfig
	sources, err := newSources(clients)
	if err != nil {
		return nil, err
	}
	handle := informers.NewHandle(informers.WithResync(resyncPeriod(c.MinResyncPeriod)), informers.WithTransform(trim(registry)))
	processMetrics().informers.Watch(handle)
	return &ControllerContext{
		Informers:        handle,
		sources:          sources,
		writtenFoos:      &reconcile.Written{},
		writtenIcecreams: &reconcile.Written{},
		clients:          clients,
		events:           events,
		config:           c,
	}, nil
}

// scheme knows every kind that an Event may be about.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(kubescheme.AddToScheme(scheme))
	utilruntime.Must(samplescheme.AddToScheme(scheme))
	return scheme
})

// recorder returns a recorder of Events whose source is the named component.
func (c *ControllerContext) recorder(component string) record.EventRecorder {
	return c.events.NewRecorder(scheme(), corev1.EventSource{Component: component})
}

// LoopOptions returns how each loop of the named controller is to work: counted, bounded
// in time, at rest while what it reads is not served.
func (c *ControllerContext) LoopOptions(name string) []reconcile.Option {
	processMetrics().syncs.Prepare(name)
	return []reconcile.Option{
		reconcile.WithObserver(processMetrics().syncs.Observe),
		reconcile.WithResyncs(c.config.MinResyncPeriod > 0),
		reconcile.WithTimeout(c.config.SyncTimeout),
		reconcile.WithSources(c.Informers),
		reconcile.WithTally(tally),
		reconcile.WithAdaptiveWorkers(c.LeaderElection.WriteTimeout),
	}
}

// newBroadcaster returns the one broadcaster of Events of the process. It is not
// bound to the end of ctx: what the last syncs have to tell is still sent.
func newBroadcaster(ctx context.Context) record.EventBroadcaster {
	return record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
}

// startEvents has the broadcaster write its Events to the log and to the API. The log
// goes without their messages, which are for those who may read the object: they may
// quote it.
func startEvents(ctx context.Context, events record.EventBroadcaster, c clients) error {
	client, err := c.kube(c.rest("events", requestTimeout))
	if err != nil {
		return fmt.Errorf("starting Events: %w", err)
	}
	logger := klog.FromContext(ctx)
	events.StartEventWatcher(func(e *corev1.Event) {
		object := klog.KRef(e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		logger.Info("Event occurred", "kind", e.InvolvedObject.Kind, "object", object, "type", e.Type, "reason", e.Reason)
	})
	events.StartRecordingToSink(eventSink(client))
	return nil
}
