// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// Trim drops from a Deployment that is to be cached what is never looked at. Of one
// that no object of ours controls, it leaves what tells whose it is. It may be called
// again.
func Trim(d *appsv1.Deployment) {
	d.Annotations = nil
	if !isOurs(d) {
		d.ManagedFields, d.Finalizers = nil, nil
		d.Spec = appsv1.DeploymentSpec{Selector: d.Spec.Selector}
		d.Status = appsv1.DeploymentStatus{}
		return
	}
	trimManagedFields(d)
}

func isOurs(d *appsv1.Deployment) bool {
	owner := metav1.GetControllerOfNoCopy(d)
	if owner == nil {
		return false
	}
	group := groupOf(owner)
	return group == samplev1alpha1.GroupName || group == icecreamv1alpha1.GroupName
}

// trimManagedFields leaves only who manages the Deployment's replicas.
func trimManagedFields(d *appsv1.Deployment) {
	kept := slices.DeleteFunc(d.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return !managesReplicas(entry) })
	for i := range kept {
		kept[i].FieldsV1 = nil
	}
	d.ManagedFields = slices.Clip(kept)
}
