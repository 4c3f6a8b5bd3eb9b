// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
)

// Trim leaves of a Deployment that is to be cached what is looked at: that is little, and of
// one whose controller is not in one of the API groups, no more than whose it is. The groups
// are those of all kinds that Deployments are kept for. It may be called again.
func Trim(d *appsv1.Deployment, groups sets.Set[string]) {
	d.Labels, d.Annotations, d.Finalizers = nil, nil, nil
	if owner := metav1.GetControllerOfNoCopy(d); owner == nil || !groups.Has(groupOf(owner)) {
		d.ManagedFields = nil
		d.Spec = appsv1.DeploymentSpec{Selector: selectorForUs(d.Spec.Selector)}
		d.Status = appsv1.DeploymentStatus{}
		return
	}
	trimManagedFields(d)
	spec := appsv1.DeploymentSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Paused: d.Spec.Paused}
	if image := imageOf(d); image != "" {
		spec.Template.Spec.Containers = containersOf(image)
	}
	d.Spec = spec
	trimConditions(d)
}

// containersByImage are those of cached Deployments. Most have an image in common, and each
// container takes 400 bytes.
var containersByImage = lru.New(100)

func containersOf(image string) []corev1.Container {
	if shared, ok := containersByImage.Get(image); ok {
		return shared.([]corev1.Container)
	}
	containers := []corev1.Container{{Name: containerName, Image: image}}
	containersByImage.Add(image, containers)
	return containers
}

// selectorForUs returns the selector if the Deployment may have been made for an object of
// ours, of which nothing else tells once the owner reference has been taken away.
func selectorForUs(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil || selector.MatchLabels[controllerLabel] == "" {
		return nil
	}
	return selector
}

// trimManagedFields leaves only who manages the fields that an owner may declare.
func trimManagedFields(d *appsv1.Deployment) {
	kept := slices.DeleteFunc(d.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return !managed(entry).any() })
	for i := range kept {
		kept[i].FieldsV1 = entriesOf[managed(kept[i])]
	}
	d.ManagedFields = exact(kept)
}

// trimConditions leaves those that tell of trouble.
func trimConditions(d *appsv1.Deployment) {
	kept := slices.DeleteFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return (c.Type != appsv1.DeploymentProgressing || c.Status != corev1.ConditionFalse) &&
			(c.Type != appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue)
	})
	d.Status.Conditions = exact(kept)
}

// exact returns the elements without the room that others of their array have left, nil if
// there are none.
func exact[T any](kept []T) []T { return append([]T(nil), kept...) }
