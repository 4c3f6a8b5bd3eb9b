// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The Deployment is made as Kubernetes' sample-controller makes it, so that
// either controller takes over from the other without a new ReplicaSet.
const (
	containerName   = "nginx"
	defaultImage    = "nginx:latest"
	controllerLabel = "controller" // has the name of the owner
)

// Owner is an object that a Deployment is kept for, reduced to what the kinds
// have in common. It is read-only.
type Owner struct {
	metav1.Object
	// Kind of the object.
	Kind schema.GroupVersionKind
	// App is the value of the Pods' label "app", by which the Pods of one kind
	// are told from those of another.
	App string
	// DeploymentName, Replicas and Image are as in the object's spec.
	DeploymentName string
	Replicas       *int32
	Image          string
	// HadDeployment says that there has been a Deployment: the object's status tells.
	HadDeployment bool
	// Confirm, if set, returns [reconcile.ErrStale] if the object wants something else
	// by now, or is gone or being deleted. Writes that rely on it ask before. The version
	// is that of all objects when it looked, empty if that is not known.
	Confirm func(context.Context) (version string, err error)
}

// String names the owner in messages: its kind and its name in quotes.
func (o Owner) String() string { return fmt.Sprintf("%s %q", o.Kind.Kind, o.GetName()) }

// Owns tells whether the Deployment is the owner's.
func (o Owner) Owns(deployment *appsv1.Deployment) bool {
	return metav1.IsControlledBy(deployment, o.Object)
}

// invalid returns what is wrong with the spec and what to write instead, or "".
// The API server refuses such an object, but one may have been stored before it
// did.
func (o Owner) invalid() string {
	if o.DeploymentName == "" {
		return "spec.deploymentName is empty: set it to the name of the Deployment to keep"
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

// labels returns the labels by which the Deployment selects its Pods.
func (o Owner) labels() map[string]string {
	return map[string]string{"app": o.App, controllerLabel: labelValue(o.GetName())}
}

// labelValue returns a label value for the name of an object. A name may be
// longer than a label value: then its first 52 characters, "_" and 10 hex digits
// of its SHA-256 stand for it. No name has a "_", so none collides.
func labelValue(name string) string {
	if len(name) <= content.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:52] + "_" + hex.EncodeToString(sum[:])[:10]
}
