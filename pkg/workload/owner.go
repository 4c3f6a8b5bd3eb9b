// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// The Deployment has the same form as that of Kubernetes' sample-controller, so that either
// controller can take over from the other without a new ReplicaSet.
const (
	containerName   = "nginx"
	defaultImage    = "nginx:latest"
	controllerLabel = pods.Selector // its value is the name of the owner
)

// Owner is an object that manages one Deployment, reduced to what all kinds have in common.
// It is read-only.
type Owner struct {
	metav1.Object
	// Kind of the object.
	Kind schema.GroupVersionKind
	// App is the value of the Pods' label "app". It differs between kinds.
	App string
	// DeploymentName, Replicas and Image are as in the object's spec.
	DeploymentName string
	Replicas       *int32
	Image          string
	// ObservedGeneration is the generation that the object's status describes.
	ObservedGeneration int64
	// HadDeployment is whether the status describes a Deployment.
	HadDeployment bool
	// Problem is what the object's status says about the Pod that is worst off, "" if nothing.
	Problem string
}

// String returns the kind and the quoted name, for messages.
func (o Owner) String() string { return fmt.Sprintf("%s %q", o.Kind.Kind, o.GetName()) }

// Owns reports whether the owner is the Deployment's controller.
func (o Owner) Owns(deployment *appsv1.Deployment) bool {
	return metav1.IsControlledBy(deployment, o.Object)
}

// invalid returns what is wrong with the spec and how to fix it, or "". The API server
// rejects such objects now, but one may have been stored before it did.
func (o Owner) invalid() string {
	if o.DeploymentName == "" {
		return "spec.deploymentName is empty: set it to the name of the Deployment to manage"
	}
	if problems := content.IsDNS1123Subdomain(o.DeploymentName); len(problems) > 0 {
		return fmt.Sprintf("spec.deploymentName %q is not a valid name: %s", o.DeploymentName, problems[0])
	}
	if o.Replicas != nil && *o.Replicas < 0 {
		return fmt.Sprintf("spec.replicas is %d: set it to 0 or more, or leave it out", *o.Replicas)
	}
	return ""
}

// newDeployment returns the Deployment to create for the owner.
func (o Owner) newDeployment() *appsv1.Deployment {
	labels := o.labels()
	image := o.Image
	if image == "" {
		image = defaultImage
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            o.DeploymentName,
			Namespace:       o.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, o.Kind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: o.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: image}}},
			},
		},
	}
}

// labels returns the labels that the Deployment selects its Pods by.
func (o Owner) labels() map[string]string {
	return map[string]string{"app": o.App, controllerLabel: labelValue(o.GetName())}
}

// labelValue returns a label value for the name of an object. A name that is too long for a
// label value is shortened to its first 52 characters, "_" and 10 hex digits of its
// SHA-256. Names cannot contain "_", so this never equals another object's name.
func labelValue(name string) string {
	if len(name) <= content.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:52] + "_" + hex.EncodeToString(sum[:])[:10]
}
