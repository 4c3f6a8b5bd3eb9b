// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
)

// describe returns the reason and the message for a field of the Deployment that does not stay as declared. They
// name the field of the owner.
func (o Owner) describe(d *appsv1.Deployment, f controller.Failure) (reason, message string) {
	field, declared, what := fieldReplicas, "spec.replicas", "spec.replicas"
	reason = workloadv1alpha1.ReasonReplicasContested
	if f.Field != "/spec/replicas" {
		field, declared, what = fieldImage, "spec.image", fmt.Sprintf("the image of container %q", containerName)
		reason = workloadv1alpha1.ReasonImageContested
	}
	if f.Reason == controller.ReasonRewrittenByAdmission {
		return workloadv1alpha1.ReasonRewrittenByAdmission,
			fmt.Sprintf("%s of %s is %q, and admission changed it to %q in Deployment %q: declare that value, or exempt the Deployment from the webhook or policy; it is retried every %v",
				declared, o, o.declared(field), valueOf(d, field), d.Name, f.Retry)
	}
	return reason, fmt.Sprintf("%s of Deployment %q is also set by %s: remove %s from %s, or stop the other writer; until then it is corrected at most every %v",
		what, d.Name, managerNamed(f.FieldManager), declared, o, f.Retry)
}

// isCorrected reports whether a write set back a field that another writer had set. The spec had been carried out
// before, and the value was not ours, such as one that could not be written until now.
func (o Owner) isCorrected(before, after *appsv1.Deployment, f field, fieldManager string) bool {
	return valueOf(before, f) != valueOf(after, f) && o.ObservedGeneration == o.GetGeneration() &&
		!slices.ContainsFunc(before.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == fieldManager && managed(entry)[f]
		})
}
