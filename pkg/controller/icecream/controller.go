// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the name of the controller in --controllers, its queue, metrics, logs and
// health check. It is also its Event source, field manager and user agent. Events about
// placements have the source icecream-controller-placement.
const ControllerName = kinds.IcecreamController

// placementSource is the purpose of the recorder of placements: see controller.Context.
const placementSource = "placement"

// NewController returns the controller. The client writes the statuses of Icecreams. ctx
// has the logger for placements, and placements records Events about them. These can be many,
// so their source differs from that of o.Recorder. See [workload.NewController].
func NewController(
	ctx context.Context,
	client icecreamv1alpha1client.IcecreamsGetter,
	o workload.Options[*icecreamv1alpha1.Icecream],
	informers ownership.Informers,
	placements record.EventRecorder,
) (*workload.Controller[*icecreamv1alpha1.Icecream], error) {
	chain, err := ownership.NewChain(informers)
	if err != nil {
		return nil, err
	}
	log := newPlacementLog(klog.FromContext(ctx), placements, o.Objects.GetTypedIndexer())
	k := &kind{client: client, chain: chain, log: log}
	c, err := workload.NewController(ControllerName, k, o)
	if err != nil {
		return nil, err
	}
	reconcile.WatchDeletions(c.Loop(), o.Objects, func(icecream *icecreamv1alpha1.Icecream) []cache.ObjectName {
		log.forget(icecream)
		return nil
	})
	reconcile.WatchChanges(c.Loop(), informers.Pods, movedPlace, chain.OfPod(kinds.Icecream))
	reconcile.WatchUpdates(c.Loop(), informers.Pods, hasFinished, k.finished)
	reconcile.WatchDeletions(c.Loop(), informers.Pods, k.departed)
	reconcile.Watch(c.Loop(), informers.ReplicaSets, chain.OfReplicaSet(kinds.Icecream))
	return c, nil
}

func movedPlace(before, now *podrecord.Record) bool { return !before.SamePlace(now) }

func hasFinished(before, now *podrecord.Record) bool { return !before.Finished() && now.Finished() }
