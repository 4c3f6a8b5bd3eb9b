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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// create returns the decision to create the Deployment. After a rename, it copies
// everything that the owner does not declare from the former Deployment. former is nil if
// there is none.
func (o Owner) create(former *appsv1.Deployment) Decision {
	d := o.newDeployment()
	if former == nil {
		return Decision{Create: d}
	}
	if blocker := o.missingContainer(former); blocker != nil {
		return Decision{Blocker: blocker}
	}
	spec := former.Spec.DeepCopy()
	replicas := replicasOf(former)
	if spec.Replicas = &replicas; o.Replicas != nil {
		spec.Replicas = o.Replicas
	}
	if o.Image != "" {
		setImage(spec.Template.Spec.Containers, o.Image)
	}
	// The selector is always ours, even if somebody else created the former Deployment.
	spec.Selector = d.Spec.Selector
	labels := maps.Clone(spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.labels())
	spec.Template.Labels = labels
	d.Spec, d.Labels, d.Annotations = *spec, maps.Clone(former.Labels), carriedAnnotations(former)
	return Decision{Create: d}
}

// setImage sets the image of the owner's container.
func setImage(containers []corev1.Container, image string) {
	for i := range containers {
		if containers[i].Name == containerName {
			containers[i].Image = image
		}
	}
}

// carriedAnnotations returns the annotations of a former Deployment except those about that
// very Deployment, which the deployment controller does not copy to ReplicaSets either.
func carriedAnnotations(former *appsv1.Deployment) map[string]string {
	annotations := maps.Clone(former.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || key == appsv1.DeprecatedRollbackTo || strings.HasPrefix(key, "deployment.kubernetes.io/")
	})
	return annotations
}

// readFormer replaces the newest former Deployment of the view, which is trimmed, with the
// full one from the API server. If the error shows that the cache is stale, the State has
// the outdated Deployment in Refused.
func (k *Reconciler) readFormer(ctx context.Context, view View) (State, error) {
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

// obsolete returns a former Deployment that may be deleted: one without available Pods, or
// any once the present Deployment is available. It returns nil if there is none.
func (o Owner) obsolete(view View) *appsv1.Deployment {
	if len(view.Former) == 0 {
		return nil
	}
	served := judge(o, State{Deployment: view.Live}).reason == workloadv1alpha1.ReasonAvailable
	for _, former := range view.Former {
		if former.DeletionTimestamp == nil && (served || former.Status.AvailableReplicas == 0) {
			return former
		}
	}
	return nil
}

// delete deletes a former Deployment unless it has changed since it was cached.
func (k *Reconciler) delete(ctx context.Context, o Owner, live, former *appsv1.Deployment) (State, error) {
	if former.Status.AvailableReplicas > 0 {
		if err := k.confirm(ctx, live); apierrors.IsConflict(err) {
			return State{Refused: live}, err
		} else if err != nil {
			return State{}, err
		}
	}
	background := metav1.DeletePropagationBackground
	err := k.client.Deployments(former.Namespace).Delete(ctx, former.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &former.UID, ResourceVersion: &former.ResourceVersion},
		PropagationPolicy: &background,
	})
	if err != nil {
		return notWritten(o, "deleting former", former, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted former Deployment", "deployment", klog.KObj(former))
	return State{Deployment: live, Refused: former}, nil // waits until the cache has the deletion
}

// confirm returns a conflict unless the Deployment on the API server equals the cached one.
// If an owner is renamed back and forth, a stale cache may show an available Deployment
// that the last sync has already deleted. The only one that is really available must not be
// deleted in favor of that one.
func (k *Reconciler) confirm(ctx context.Context, d *appsv1.Deployment) error {
	now, err := k.get(ctx, d.Namespace, d.Name)
	if err != nil {
		return err
	}
	if now != nil && now.UID == d.UID && now.ResourceVersion == d.ResourceVersion {
		return nil
	}
	return stale(d.Name, errors.New("it has changed since it was cached"))
}
