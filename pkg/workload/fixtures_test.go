// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var fooKind = schema.GroupVersionKind{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Kind: "Foo"}

// owner returns an owner "a" with Deployment "web" and three replicas, modified by the
// given functions.
func owner(changes ...func(*Owner)) Owner {
	p := Owner{
		Object:         &metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "uid-a", Generation: 4},
		Kind:           fooKind,
		App:            "nginx",
		DeploymentName: "web",

		ObservedGeneration: 4,
		Replicas:           ptr.To[int32](3),
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func wantReplicas(n *int32) func(*Owner)      { return func(p *Owner) { p.Replicas = n } }
func wantImage(image string) func(*Owner)     { return func(p *Owner) { p.Image = image } }
func wantDeployment(name string) func(*Owner) { return func(p *Owner) { p.DeploymentName = name } }

// deployment returns the available Deployment of owner "a" as the API server returns it,
// modified by the given functions.
func deployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := owner().newDeployment()
	d.UID, d.ResourceVersion, d.Generation = "uid-web", "7", 2
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3,
		AvailableReplicas: 3}
	for _, change := range changes {
		change(d)
	}
	return d
}

func withReplicas(n *int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = n }
}

func withImage(image string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
}

func withOwner(owner *metav1.OwnerReference) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences = nil
		if owner != nil {
			owner.Controller = ptr.To(true)
			d.OwnerReferences = []metav1.OwnerReference{*owner}
		}
	}
}

func withSelector(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func named(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Name, d.UID = name, types.UID("uid-"+name) }
}

func createdAt(second int) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.Unix(int64(second), 0) }
}

func withStatus(total, updated, available int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = total, updated, available
	}
}

func withSidecar(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "envoy"}}, d.Spec.Template.Spec.Containers...)
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func rolledOut(d *appsv1.Deployment) {
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
}

// present is the time of decisions.
var present = time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)

func deleted(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: present} }

func ownerSince(age time.Duration) func(*Owner) {
	return func(p *Owner) { p.SetCreationTimestamp(metav1.NewTime(present.Add(-age))) }
}

func ownerReference(apiVersion, kind, name string, uid types.UID) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
}

// list returns the Deployments that are not nil.
func list(deployments ...*appsv1.Deployment) []*appsv1.Deployment {
	return slices.DeleteFunc(deployments, func(d *appsv1.Deployment) bool { return d == nil })
}

func managedBy(manager, subresource, fields string, second int) metav1.ManagedFieldsEntry {
	at := metav1.Unix(int64(second), 0)
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at,
		FieldsV1: metav1.NewFieldsV1(fields)}
}

// contested returns our Deployment as an autoscaler has left it.
func contested() *appsv1.Deployment {
	return deployment(withReplicas(ptr.To[int32](9)), func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{
			managedBy("test-manager", "", `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`, 9),
			managedBy("kubectl", "", `{"f:spec":{"f:replicas":{}}}`, 1),
			managedBy("autoscaler", "scale", `{"f:spec":{"f:replicas":{}}}`, 2),
			managedBy("deployment-controller", "status", `{"f:status":{"f:replicas":{}}}`, 3),
			managedBy("labeller", "", `{"f:metadata":{"f:labels":{}}}`, 4),
		}
	})
}
