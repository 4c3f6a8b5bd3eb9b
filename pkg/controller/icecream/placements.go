// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

type request = controller.Request[*icecreamv1alpha1.Icecream]

// placements implements [workload.Extra]: the records of placements in the status, and their log.
type placements struct {
	workload *workload.Workload[*icecreamv1alpha1.Icecream]
	chain    *pods.Chain
	log      *placementLog
}

// Set logs the placements that are not logged yet, and records them in the status.
func (p *placements) Set(r *request, icecream *icecreamv1alpha1.Icecream) {
	reported := p.reported(r, icecream)
	all, orphaned := p.merged(icecream, reported)
	p.log.sync(icecream, nameOf(reported), all, orphaned)
	icecream.Status.Placements, icecream.Status.PlacementsOmitted = newest(all)
}

// Forget forgets an Icecream that is gone.
func (p *placements) Forget(r *request) { p.log.forget(r.Key()) }

// Facts reports which placements are recorded.
func (p *placements) Facts(r *request, icecream *icecreamv1alpha1.Icecream) []controller.Fact {
	all, _ := p.merged(icecream, p.reported(r, icecream))
	records, omitted := newest(all)
	status := icecream.Status
	fact := controller.NewFact("recorded placements", count(records, omitted), count(status.Placements, status.PlacementsOmitted))
	fact.Differs = status.PlacementsOmitted != omitted || !equality.Semantic.DeepEqual(status.Placements, records)
	return []controller.Fact{fact}
}

func count(records []icecreamv1alpha1.Placement, omitted int32) string {
	if omitted > 0 {
		return fmt.Sprintf("%d, and %d older ones left out", len(records), omitted)
	}
	return fmt.Sprint(len(records))
}

// reported returns the Deployment that the status describes, nil if there is none.
func (p *placements) reported(r *request, icecream *icecreamv1alpha1.Icecream) *appsv1.Deployment {
	return Adapter.Owner(icecream).Reported(p.workload.Deployments.List(r))
}

// nameOf returns the name of a Deployment, "" if there is none.
func nameOf(d *appsv1.Deployment) string {
	if d == nil {
		return ""
	}
	return d.Name
}

// merged returns the placements of an Icecream; see [mergePlacements].
func (p *placements) merged(
	icecream *icecreamv1alpha1.Icecream, reported *appsv1.Deployment,
) ([]icecreamv1alpha1.Placement, sets.Set[types.UID]) {
	exists := func(recorded icecreamv1alpha1.Placement) bool {
		return p.chain.HasPod(icecream.Namespace, recorded.Pod, recorded.PodUID) && !p.ofFormer(icecream, recorded.Pod)
	}
	return mergePlacements(icecream.Status.Placements, p.chain.PodsOf(reported), exists)
}

// ofFormer reports whether a Pod that is not below the Deployment that the status describes belongs to
// another one of the Icecream.
func (p *placements) ofFormer(icecream *icecreamv1alpha1.Icecream, pod string) bool {
	d := p.chain.DeploymentOfPod(icecream.Namespace, pod)
	return d != nil && metav1.IsControlledBy(d, icecream)
}
