// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the name of the controller in --controllers, its queue, metrics, logs and
// health check. It is also its Event source, field manager and user agent. Events about
// placements have the source icecream-controller-placement.
const ControllerName = "icecream-controller"

// placementSource is the purpose of the recorder of placements: see controller.Context. These Events can be
// many, so their source is another one.
const placementSource = "placement"

// Adapter describes Icecreams.
var Adapter = workload.Adapter[*icecreamv1alpha1.Icecream]{
	GroupVersionKind: icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream"),
	App:              "icecream",
	Spec: func(icecream *icecreamv1alpha1.Icecream) workload.Spec {
		s := icecream.Spec
		return workload.Spec{DeploymentName: s.DeploymentName, Replicas: s.Replicas, Image: s.Image}
	},
	Status: func(icecream *icecreamv1alpha1.Icecream) *workloadv1alpha1.Status { return &icecream.Status.Status },
}

// Descriptor returns the controller's entry in the controller map.
func Descriptor() controller.Descriptor {
	return controller.Descriptor{Name: ControllerName, Aliases: []string{"icecream"}, New: newController, Workers: 10}
}

func newController(ctx context.Context, c *controller.Context) (controller.Controller, error) {
	w := workload.New(c, Adapter)
	p := &placements{workload: w, log: newPlacementLog(klog.FromContext(ctx), c.RecorderFor(placementSource))}
	p.chain = pods.Watch(w.Objects, Adapter.GroupVersionKind, w.Named.Get, pods.Filter{Changes: p.movesOrEnds})
	controller.WatchAs(w.Objects, p.recordedBy, controller.Selector(pods.Selector), controller.Changes(isGone))
	w.Objects.Source(p.log.term)
	return w.Controller(p)
}

// movesOrEnds reports whether an event of a Pod may change what is recorded of it. It notes a Pod that has
// just finished or gone: only this event may show a Pod that came and went between two calls for its Icecream.
// The call that the event causes comes after the note.
func (p *placements) movesOrEnds(before, now *pods.Record) bool {
	switch {
	case before == nil: // if it is finished, then perhaps since long ago
		return true
	case before.Facts().Finished(): // it was noted then
	case isGone(before, now):
		p.ends(before)
	case now.Facts().Finished():
		p.ends(now)
	}
	return now == nil || !before.Facts().SamePlace(now.Facts())
}

// isGone reports whether the Pod of an event is gone, perhaps replaced by another one of its name.
func isGone(before, now *pods.Record) bool {
	return before != nil && (now == nil || before.Facts().UID() != now.Facts().UID())
}

// ends notes a Pod that ends. One that was never scheduled has no placement.
func (p *placements) ends(pod *pods.Record) {
	d := p.chain.DeploymentOf(pod)
	if d == nil || pod.Facts().Node() == "" {
		return
	}
	for _, key := range pods.OwnerKeys(Adapter.GroupVersionKind, d) {
		icecream := metav1.GetControllerOfNoCopy(d).UID
		p.log.end(key, ended{icecream: icecream, deployment: d.Name, placement: placementOf(pod)})
	}
}

// recordedBy returns the keys of the Icecreams that record a Pod whose owner chain does not lead to them.
func (p *placements) recordedBy(pod *pods.Record) []cache.ObjectName {
	return p.log.recordedBy(pod.Facts().UID())
}
