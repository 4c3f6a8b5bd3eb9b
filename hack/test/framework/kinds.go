// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// Kind is a kind whose objects own Deployments. There are two, so most tests run for both.
type Kind struct{ clustertest.Objects }

// current has the client of the cluster that tests use now: [OwnAPIServer] changes it.
type current struct{}

func (current) Dynamic() dynamic.Interface { return Dynamic() }

// The kinds, with a cluster admin's clients.
var (
	Foos      = Kind{clustertest.Foos(current{})}
	Icecreams = Kind{clustertest.Icecreams(current{})}
	Kinds     = []Kind{Foos, Icecreams}
)

// Other returns the other kind.
func (k Kind) Other() Kind {
	if k == Foos {
		return Icecreams
	}
	return Foos
}

// EachKind runs a test for each kind, one after the other.
func EachKind(t *testing.T, test func(t *testing.T, k Kind)) {
	t.Helper()
	for _, k := range Kinds {
		t.Run(k.Kind, func(t *testing.T) { test(t, k) })
	}
}

// OverKinds runs a test for each kind in parallel, and returns when all have ended.
func OverKinds(t *testing.T, test func(t *testing.T, k Kind)) {
	t.Run("over kinds", func(t *testing.T) {
		for _, k := range Kinds {
			t.Run(k.Kind, func(t *testing.T) {
				t.Parallel()
				test(t, k)
			})
		}
	})
}

// TryDeclare creates an object with a spec.
func (k Kind) TryDeclare(ctx context.Context, ns, name string, spec samplev1alpha1.FooSpec) (*samplev1alpha1.Foo,
	error) {
	object := k.New(name, 0)
	object.Spec = spec
	return k.TryStore(ctx, ns, object)
}

// Declare is TryDeclare for a spec that the API server must accept.
func (k Kind) Declare(t *testing.T, ns, name string, spec samplev1alpha1.FooSpec) *samplev1alpha1.Foo {
	t.Helper()
	object, err := k.TryDeclare(t.Context(), ns, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// CreateNaming creates an object that wants one replica of the named Deployment.
func (k Kind) CreateNaming(t *testing.T, ns, name, deployment string) {
	t.Helper()
	k.Declare(t, ns, name, Naming(deployment))
}

// Naming returns a spec that wants one replica of the named Deployment.
func Naming(deployment string) samplev1alpha1.FooSpec {
	return samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: ptr.To[int32](1)}
}

// Manifest returns a YAML document with an object of the kind. With 0 replicas it omits the
// field.
func (k Kind) Manifest(name, deployment string, replicas int) string {
	manifest := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  deploymentName: %s\n", k.GroupVersion(), k.Kind, name, deployment)
	if replicas > 0 {
		manifest += fmt.Sprintf("  replicas: %d\n", replicas)
	}
	return manifest
}
