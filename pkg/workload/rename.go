// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// create returns the decision to create the Deployment. After a rename it has all that the
// former Deployment has and the parent leaves to others. former is nil if there is none.
func (p Parent) create(former *appsv1.Deployment) Decision {
	d := p.newDeployment()
	if former == nil {
		return Decision{Create: d}
	}
	if obstacle := p.missingContainer(former); obstacle != nil {
		return Decision{Obstacle: obstacle}
	}
	spec := former.Spec.DeepCopy()
	replicas := replicasOf(former)
	if spec.Replicas = &replicas; p.Replicas != nil {
		spec.Replicas = p.Replicas
	}
	if p.Image != "" {
		setImage(spec.Template.Spec.Containers, p.Image)
	}
	// The selector is ours, also where the former Deployment was made by somebody else.
	spec.Selector = d.Spec.Selector
	labels := maps.Clone(spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.labels())
	spec.Template.Labels = labels
	d.Spec, d.Labels, d.Annotations = *spec, maps.Clone(former.Labels), carriedAnnotations(former)
	return Decision{Create: d}
}

// setImage sets the image of the container that is the parent's.
func setImage(containers []corev1.Container, image string) {
	for i := range containers {
		if containers[i].Name == containerName {
			containers[i].Image = image
		}
	}
}

// carriedAnnotations returns the annotations of a former Deployment without those that
// speak of this very Deployment, which the deployment controller does not copy either.
func carriedAnnotations(former *appsv1.Deployment) map[string]string {
	annotations := maps.Clone(former.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || key == appsv1.DeprecatedRollbackTo || strings.HasPrefix(key, "deployment.kubernetes.io/")
	})
	return annotations
}

// readFormer replaces the newest former Deployment of the view, of which the cache has
// only a part, by what the API server has. With an error that shows the cache to be late
// the State says for what.
func (k *Keeper) readFormer(ctx context.Context, view View) (State, error) {
	former := view.former()
	now, err := k.get(ctx, former.Namespace, former.Name)
	if err != nil {
		return State{}, err
	}
	if now == nil || now.UID != former.UID {
		return State{Refused: former}, stale(former.Name, errors.New("the former Deployment is gone"))
	}
	view.Former[0] = now
	return State{}, nil
}

// obsolete returns a former Deployment that may go: one that serves nobody, or any
// once the present one serves. There is nil if none may.
func (p Parent) obsolete(view View) *appsv1.Deployment {
	if len(view.Former) == 0 {
		return nil
	}
	served := judge(p, State{Deployment: view.Live}).conditionType == workloadv1alpha1.ConditionReady
	for _, former := range view.Former {
		if former.DeletionTimestamp == nil && (served || former.Status.AvailableReplicas == 0) {
			return former
		}
	}
	return nil
}
