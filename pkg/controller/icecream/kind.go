// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	icecreamv1alpha1apply "samplecontroller.io/client-go/applyconfiguration/icecream/v1alpha1"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// kind implements [workload.Kind].
type kind struct {
	client icecreamv1alpha1client.IcecreamsGetter
	chain  *ownership.Chain
	log    *placementLog
}

func (*kind) GroupVersionKind() schema.GroupVersionKind { return kinds.Icecream }

func (*kind) StatusResource() schema.GroupResource {
	return icecreamv1alpha1.Resource("icecreams/status")
}

func (*kind) Owner(icecream *icecreamv1alpha1.Icecream) workload.Owner {
	return kinds.IcecreamOwner(icecream)
}

func (k *kind) List(ctx context.Context, namespace string, options metav1.ListOptions) ([]*icecreamv1alpha1.Icecream, string, error) {
	list, err := k.client.Icecreams(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	var icecreams []*icecreamv1alpha1.Icecream
	for i := range list.Items {
		icecreams = append(icecreams, &list.Items[i])
	}
	return icecreams, list.ResourceVersion, nil
}

func (*kind) Status(icecream *icecreamv1alpha1.Icecream) workload.Status {
	return workload.Status{
		ObservedGeneration: icecream.Status.ObservedGeneration,
		Replicas:           icecream.Status.Replicas,
		ReadyReplicas:      icecream.Status.ReadyReplicas,
		AvailableReplicas:  icecream.Status.AvailableReplicas,
		Selector:           icecream.Status.Selector,
		UnavailableSince:   icecream.Status.UnavailableSince,
		Conditions:         workload.OwnConditions(icecream.Status.Conditions),
	}
}

func (*kind) Conditions(icecream *icecreamv1alpha1.Icecream) (int64, []metav1.Condition) {
	return icecream.Status.ObservedGeneration, icecream.Status.Conditions
}

func (k *kind) SameStatus(a, b *icecreamv1alpha1.Icecream) bool {
	return k.Status(a).Equal(k.Status(b)) &&
		samePlacements(a.Status, b.Status.Placements, b.Status.PlacementsOmitted)
}

func (k *kind) StatusWrite(icecream *icecreamv1alpha1.Icecream, current, wanted workload.Status) (workload.StatusWrite[*icecreamv1alpha1.Icecream], error) {
	placements, cut, err := k.placements(icecream)
	if err != nil {
		return nil, err
	}
	k.log.sync(icecream, placements, cut)
	records, omitted := newest(placements)
	if current.Equal(wanted) && samePlacements(icecream.Status, records, omitted) {
		return nil, nil
	}
	return func(ctx context.Context) (*icecreamv1alpha1.Icecream, error) {
		client := k.client.Icecreams(icecream.Namespace)
		applied, err := client.ApplyStatus(ctx, applyStatus(icecream, wanted, records, omitted), metav1.ApplyOptions{FieldManager: ControllerName, Force: true})
		if err != nil {
			return nil, err
		}
		stray := workload.Stray(applied.Status.Conditions, applied.Status.UnavailableSince, wanted)
		if len(records) == 0 && len(applied.Status.Placements) > 0 {
			stray = append(stray, "/status/placements")
		}
		return workload.RemoveStray(ctx, ControllerName, applied, client.Patch, stray...)
	}, nil
}

// placements returns the placements of the Icecream; see [place].
func (k *kind) placements(icecream *icecreamv1alpha1.Icecream) ([]icecreamv1alpha1.Placement, sets.Set[types.UID], error) {
	reported, err := k.reported(icecream)
	if err != nil {
		return nil, nil, err
	}
	pods, err := k.chain.PodsOf(reported)
	if err != nil {
		return nil, nil, fmt.Errorf("reading Pods: %w", err)
	}
	placements, cut := place(icecream.Status.Placements, pods, func(p icecreamv1alpha1.Placement) bool {
		return k.chain.HasPod(icecream.Namespace, p.Pod, p.PodUID) && !k.ofFormer(icecream, p.Pod)
	})
	return placements, cut, nil
}

// reported returns the Deployment that the status of the Icecream describes, nil if there is none.
func (k *kind) reported(icecream *icecreamv1alpha1.Icecream) (*appsv1.Deployment, error) {
	owned, err := k.chain.DeploymentsOf(icecream.Namespace, icecream.UID)
	if err != nil {
		return nil, err
	}
	return kinds.IcecreamOwner(icecream).Reported(owned), nil
}

// reports reports whether the status of the Icecream describes the Deployment.
func (k *kind) reports(key cache.ObjectName, d *appsv1.Deployment) bool {
	cached, exists, err := k.log.icecreams.GetByKey(key.String())
	if err != nil || !exists {
		return false
	}
	reported, err := k.reported(cached.(*icecreamv1alpha1.Icecream))
	return err == nil && reported != nil && reported.UID == d.UID
}

// ofFormer reports whether the Pod belongs to another Deployment of the Icecream than that which
// the status describes.
func (k *kind) ofFormer(icecream *icecreamv1alpha1.Icecream, name string) bool {
	d := k.chain.DeploymentOfPod(icecream.Namespace, name)
	return d != nil && metav1.IsControlledBy(d, icecream)
}

// departed logs the placement of a Pod that is gone, unless it was logged before. It
// returns the keys of Icecreams that record the Pod but are not enqueued as its owners.
func (k *kind) departed(pod *podrecord.Record) []cache.ObjectName {
	if !pod.Finished() { // or it was logged when it finished
		k.logMissed(pod)
	}
	return k.log.recordedBy(pod.UID())
}

// finished logs the placement of a Pod that has just finished, unless it was logged before. A
// sync does not log it: it cannot know whether an earlier leader did.
func (k *kind) finished(pod *podrecord.Record) []cache.ObjectName {
	k.logMissed(pod)
	return nil
}

func (k *kind) logMissed(pod *podrecord.Record) {
	// A Pod that was never scheduled has no placement.
	if d := k.chain.DeploymentOf(pod); d != nil && pod.Node() != "" {
		for _, key := range ownership.OwnerKeys(kinds.Icecream, d) {
			if k.reports(key, d) {
				k.log.departed(key, metav1.GetControllerOfNoCopy(d).UID, placementOf(pod))
			}
		}
	}
}

// Facts implements [workload.KindExplainer]. It reports which placements are recorded.
func (k *kind) Facts(icecream *icecreamv1alpha1.Icecream) ([]controller.Fact, error) {
	placements, _, err := k.placements(icecream)
	if err != nil {
		return nil, err
	}
	records, omitted := newest(placements)
	fact := controller.NewFact("recorded placements", count(records, omitted), count(icecream.Status.Placements, icecream.Status.PlacementsOmitted))
	fact.Differs = !samePlacements(icecream.Status, records, omitted)
	return []controller.Fact{fact}, nil
}

func count(records []icecreamv1alpha1.Placement, omitted int32) string {
	if omitted > 0 {
		return fmt.Sprintf("%d, and %d older ones left out", len(records), omitted)
	}
	return fmt.Sprint(len(records))
}

// samePlacements reports whether the status has these placements.
func samePlacements(status icecreamv1alpha1.IcecreamStatus, records []icecreamv1alpha1.Placement, omitted int32) bool {
	return status.PlacementsOmitted == omitted && equality.Semantic.DeepEqual(status.Placements, records)
}

// applyStatus returns the apply configuration of the status. It carries the resourceVersion
// of the Icecream, so that a late apply cannot reach a re-created Icecream of the same
// name.
func applyStatus(icecream *icecreamv1alpha1.Icecream, status workload.Status, records []icecreamv1alpha1.Placement, omitted int32) *icecreamv1alpha1apply.IcecreamApplyConfiguration {
	apply := icecreamv1alpha1apply.IcecreamStatus().
		WithObservedGeneration(status.ObservedGeneration).
		WithReplicas(status.Replicas).
		WithReadyReplicas(status.ReadyReplicas).
		WithAvailableReplicas(status.AvailableReplicas).
		WithSelector(status.Selector).
		WithConditions(workload.ApplyConditions(status.Conditions)...).
		WithPlacementsOmitted(omitted)
	apply.UnavailableSince = status.UnavailableSince
	for _, p := range records {
		apply.WithPlacements(icecreamv1alpha1apply.Placement().WithPodUID(p.PodUID).WithPod(p.Pod).WithNode(p.Node).WithTime(p.Time))
	}
	return icecreamv1alpha1apply.Icecream(icecream.Name, icecream.Namespace).
		WithResourceVersion(icecream.ResourceVersion).
		WithStatus(apply)
}
