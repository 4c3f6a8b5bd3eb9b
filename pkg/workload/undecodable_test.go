// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/tolerant"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// placeholder returns the cached placeholder of an example that cannot be decoded.
func (k kind) placeholder(resourceVersion string) object {
	return k.new(metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace, UID: "uid-example", Generation: 1, ResourceVersion: resourceVersion,
		Annotations: map[string]string{tolerant.AnnotationDecodeError: "spec.deploymentName: array where string is expected"},
	}, "", nil)
}

func TestSyncIgnoresUndecodableObject(t *testing.T) {
	const event = "Warning Undecodable Cannot be decoded, so nothing is done for it: spec.deploymentName: array where string is expected." +
		" Correct it, for example by kubectl edit, or delete it."
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.sync()
		f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }) // drift that would be corrected
		before := f.deployment()
		f.observe()

		for _, step := range []struct {
			resourceVersion string
			events          []string
		}{
			{"2", []string{event}},
			{"2", nil}, // enqueued again, by the Deployment or a resync
			{"3", []string{event}},
			{"3", nil},
		} {
			if err := f.objects.Update(kind.placeholder(step.resourceVersion)); err != nil {
				t.Fatal(err)
			}
			f.sync()
			f.wantCalls()
			f.wantEvents(step.events...)
		}
		if diff := cmp.Diff(before, f.deployment()); diff != "" {
			t.Errorf("the Deployment was changed:\n%s", diff)
		}

		f.observe() // the object is repaired
		f.sync()
		f.wantCalls("patch deployments", "patch objects/status")
		f.wantEvents()
	})
}

func TestUndecodableObjectClaimsNoDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		if err := f.objects.Update(kind.placeholder("2")); err != nil {
			t.Fatal(err)
		}
		if claimed := f.objects.ListIndexFuncValues(workload.ByDeployment); len(claimed) != 0 {
			t.Errorf("Deployments claimed = %q, want none", claimed)
		}
		// Its own Deployment still enqueues it through the owner reference.
		owned := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: deploymentName, Namespace: key.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(kind.placeholder("2"), kind.GroupVersionKind)},
		}}
		if diff := cmp.Diff([]cache.ObjectName{key}, f.controller.Concerned(owned)); diff != "" {
			t.Errorf("unexpected objects of the Deployment (-want +got):\n%s", diff)
		}
	})
}
