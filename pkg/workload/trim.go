// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
)

// revisionAnnotation is on each Deployment that has a ReplicaSet. The deployment controller sets
// it.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// trim removes the parts of a Deployment that no controller reads, before it is cached. If
// its controller is not in one of the API groups, hardly more than the owner references is
// kept. The groups are those of all kinds that manage Deployments. trim is idempotent.
func trim(d *appsv1.Deployment, groups sets.Set[string]) {
	revision := d.Annotations[revisionAnnotation]
	d.Labels, d.Annotations = nil, nil
	if d.DeletionTimestamp == nil {
		d.Finalizers = nil
	}
	if owner := metav1.GetControllerOfNoCopy(d); owner == nil || !groups.Has(groupOf(owner)) {
		d.ManagedFields = nil
		d.Spec = appsv1.DeploymentSpec{Selector: selectorForUs(d.Spec.Selector)}
		d.Status = appsv1.DeploymentStatus{}
		return
	}
	if d.Spec.Paused && revision != "" {
		d.Annotations = map[string]string{revisionAnnotation: revision}
	}
	trimManagedFields(d)
	spec := appsv1.DeploymentSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Paused: d.Spec.Paused}
	if spec.ProgressDeadlineSeconds = d.Spec.ProgressDeadlineSeconds; progressDeadline(d) == defaultDeadline {
		spec.ProgressDeadlineSeconds = nil
	}
	spec.Template.Spec.Containers = containersOf(d.Spec.Template.Spec.Containers)
	d.Spec = spec
	trimConditions(d)
}

// sharedContainers has the containers of cached Deployments by their names and image. Many are the same, and each
// takes 400 bytes.
var sharedContainers = lru.New(100)

// containersOf returns the containers up to that of the owner, with their names and its image. A patch finds
// it by its index. containersOf returns nil if there is none.
func containersOf(containers []corev1.Container) []corev1.Container {
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == containerName })
	if i < 0 {
		return nil
	}
	var kept []corev1.Container
	var key strings.Builder
	for _, c := range containers[:i+1] {
		kept = append(kept, corev1.Container{Name: c.Name})
		key.WriteString(c.Name + " ")
	}
	kept[i].Image = containers[i].Image
	key.WriteString(kept[i].Image)
	if shared, ok := sharedContainers.Get(key.String()); ok {
		return shared.([]corev1.Container)
	}
	sharedContainers.Add(key.String(), kept)
	return kept
}

// selectorForUs returns the selector if the Deployment may have been created for one of our
// objects. Nothing else shows that after its owner reference was removed.
func selectorForUs(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil || selector.MatchLabels[controllerLabel] == "" {
		return nil
	}
	return selector
}

// trimManagedFields keeps only the managers of the fields that an owner may declare.
func trimManagedFields(d *appsv1.Deployment) {
	kept := slices.DeleteFunc(d.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return !managed(entry).any() })
	for i := range kept {
		kept[i].FieldsV1 = entriesFor[managed(kept[i])]
	}
	d.ManagedFields = clip(kept)
}

// completed is the condition of a Deployment that was rolled out.
var completed = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
	Reason: reasonComplete}

// onlyCompleted are the conditions of most Deployments that lack Pods after their rollout. Nobody
// may change them.
var onlyCompleted = []appsv1.DeploymentCondition{completed}

// trimConditions keeps the conditions that report failures and, while replicas are missing, that
// the rollout is complete.
func trimConditions(d *appsv1.Deployment) {
	rolledOut := rolloutComplete(d) && d.Status.AvailableReplicas < replicasOf(d)
	var kept []appsv1.DeploymentCondition
	for _, c := range d.Status.Conditions { // they may be onlyCompleted
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse ||
			c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			kept = append(kept, c)
		}
	}
	switch {
	case rolledOut && len(kept) == 0:
		d.Status.Conditions = onlyCompleted
	case rolledOut:
		d.Status.Conditions = clip(append(kept, completed))
	default:
		d.Status.Conditions = clip(kept)
	}
}

// clip returns a copy without spare capacity, nil if there are no elements.
func clip[T any](kept []T) []T { return append([]T(nil), kept...) }
