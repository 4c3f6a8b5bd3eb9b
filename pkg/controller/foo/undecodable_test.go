// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/lenient"
)

// standIn is what the cache holds of exampleFoo in a version that cannot be decoded.
func standIn(resourceVersion string) *samplev1alpha1.Foo {
	foo := exampleFoo()
	foo.ResourceVersion = resourceVersion
	foo.Annotations = map[string]string{lenient.AnnotationDecodeError: "spec.deploymentName: array where string is expected"}
	foo.Spec, foo.Status = samplev1alpha1.FooSpec{}, samplev1alpha1.FooStatus{}
	return foo
}

func TestSyncLeavesAnUndecodableFooAlone(t *testing.T) {
	const event = "Warning Undecodable Cannot be decoded, so nothing is done for it: spec.deploymentName: array where string is expected." +
		" Correct it, for example by kubectl edit, or delete it."
	f := newFixture(t, exampleFoo())
	f.sync()
	f.update(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }) // drift that would be undone
	before := f.deployment()
	f.observe()

	for _, step := range []struct {
		resourceVersion string
		events          []string
	}{
		{"2", []string{event}},
		{"2", nil}, // woken again, by the Deployment or a resync
		{"3", []string{event}},
		{"3", nil},
	} {
		if err := f.foos.Update(standIn(step.resourceVersion)); err != nil {
			t.Fatal(err)
		}
		f.sync()
		f.wantCalls()
		f.wantEvents(step.events...)
	}
	if diff := cmp.Diff(before, f.deployment()); diff != "" {
		t.Errorf("the Deployment was changed:\n%s", diff)
	}

	f.observe() // the Foo is mended
	f.sync()
	f.wantCalls("patch deployments")
	f.wantEvents()
}

func TestAnUndecodableFooClaimsNoDeployment(t *testing.T) {
	f := newFixture(t, exampleFoo())
	if err := f.foos.Update(standIn("2")); err != nil {
		t.Fatal(err)
	}
	if claimed := f.foos.ListIndexFuncValues(byDeployment); len(claimed) != 0 {
		t.Errorf("Deployments claimed = %q, want none", claimed)
	}
	// Its own Deployment still wakes it, by the owner reference.
	owned := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "example-foo", Namespace: key.Namespace, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(standIn("2"), kind)},
	}}
	if diff := cmp.Diff([]cache.ObjectName{key}, f.controller.foosOf(owned)); diff != "" {
		t.Errorf("unexpected Foos of the Deployment (-want +got):\n%s", diff)
	}
}
