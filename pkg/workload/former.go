// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reported returns the Deployment that the status of the owner describes: the one that the spec
// names or, while the owner has none of that name, the newest former one. It returns nil if there
// is none. owned are the Deployments that the owner controls.
func (o Owner) Reported(owned []*appsv1.Deployment) *appsv1.Deployment {
	for _, d := range owned {
		if d.Name == o.DeploymentName {
			return d
		}
	}
	return first(o.former(owned))
}

// former returns the Deployments that the owner got under a former spec.deploymentName, the newest
// first, and those in deletion last. Others that the owner controls were made by somebody else.
func (o Owner) former(owned []*appsv1.Deployment) []*appsv1.Deployment {
	var former []*appsv1.Deployment
	for _, d := range owned {
		if d.Name != o.DeploymentName && o.made(d) {
			former = append(former, d)
		}
	}
	slices.SortFunc(former, func(a, b *appsv1.Deployment) int {
		return cmp.Or(
			cmp.Compare(inDeletion(a), inDeletion(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.UID, b.UID))
	})
	return former
}

// made reports whether the Deployment has the selector of those that are created for the owner.
// The API server does not let anybody change it.
func (o Owner) made(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s != nil && len(s.MatchExpressions) == 0 && maps.Equal(s.MatchLabels, o.labels())
}

func inDeletion(d *appsv1.Deployment) int {
	if d.DeletionTimestamp != nil {
		return 1
	}
	return 0
}

func first(deployments []*appsv1.Deployment) *appsv1.Deployment {
	if len(deployments) == 0 {
		return nil
	}
	return deployments[0]
}

// leftOver returns the former Deployments that stay unless somebody deletes them.
func leftOver(former []*appsv1.Deployment) []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(former), func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil })
}

// leftOverMessage says which former Deployments still run, what the present one did not get from
// the newest of them, and how to delete them. It returns "" if there are none.
func (o Owner) leftOverMessage(former []*appsv1.Deployment) string {
	if len(former) == 0 {
		return ""
	}
	var names, quoted []string
	for _, d := range former {
		names, quoted = append(names, d.Name), append(quoted, fmt.Sprintf("%q", d.Name))
	}
	noun, verb := "Deployment", "runs"
	if len(former) > 1 {
		noun, verb = "Deployments", "run"
	}
	newest := former[0]
	var lost []string
	if n := replicasOf(newest); o.Replicas == nil && n != defaultReplicas {
		lost = append(lost, fmt.Sprintf("%d replicas", n))
	}
	if image := imageOf(newest); o.Image == "" && image != "" && image != defaultImage {
		lost = append(lost, fmt.Sprintf("image %q", image))
	}
	lost = append(lost, "whatever else the spec does not declare")
	return fmt.Sprintf("the former %s %s still %s; not carried over from %q: %s; once you do not need it, run kubectl -n %s delete deployment %s",
		noun, strings.Join(quoted, ", "), verb, newest.Name, strings.Join(lost, ", "), newest.Namespace, strings.Join(names, " "))
}

// keptMessage says that a former Deployment is reported until the present one exists.
func (o Owner) keptMessage(former *appsv1.Deployment) string {
	return fmt.Sprintf("until Deployment %q of %s exists, the former Deployment %q is kept, with %d of %d replicas available",
		o.DeploymentName, o, former.Name, former.Status.AvailableReplicas, replicasOf(former))
}

// earlierOwner reports whether the Deployment belongs to an earlier object of the same kind and
// name: only one object can have this name, and that is the owner.
func (o Owner) earlierOwner(d *appsv1.Deployment) bool {
	ref := metav1.GetControllerOf(d)
	return ref != nil && ref.UID != o.GetUID() && ref.Name == o.GetName() && ref.Kind == o.Kind.Kind &&
		groupOf(ref) == o.Kind.Group
}
