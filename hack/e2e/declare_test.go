// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// onOneReplica runs tests side by side, each in a namespace of its own, while one
// replica serves them all. It has one worker, so that [waitIdle] can be used.
func onOneReplica(t *testing.T, tests map[string]func(t *testing.T, ns string)) {
	freeLease(t)
	r := startReplica(t, "--concurrent-foo-syncs=1").ready()
	t.Run("on one replica", func(t *testing.T) { // returns when all below have ended
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newNamespace(t))
			})
		}
	})
	r.stop()
	wantNoDenials(t)
}

func declareFoo(t *testing.T, ns, name string, spec samplev1alpha1.FooSpec) *samplev1alpha1.Foo {
	t.Helper()
	foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return foo
}

// createFooNaming creates a Foo that wants one replica of the named Deployment.
func createFooNaming(t *testing.T, ns, name, deployment string) {
	t.Helper()
	declareFoo(t, ns, name, fooNaming(name, deployment).Spec)
}

func fooNaming(name, deployment string) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: ptr.To[int32](1)},
	}
}

// waitMessage waits until a condition of the Foo is True, for its present
// generation, with a reason and a message that begins as given, and no other of
// ours is True.
func waitMessage(t *testing.T, ns, name, conditionType, reason, message string) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("Foo %s is %s for %s", name, conditionType, reason), func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := conditionOf(foo, conditionType)
		if c.Reason != reason || !strings.HasPrefix(c.Message, message) || foo.Status.ObservedGeneration != foo.Generation {
			return fmt.Errorf("generation %d, status %+v", foo.Generation, foo.Status)
		}
		return nil
	})
}

// conditionOf returns the condition if it is True, and no other of ours is.
func conditionOf(foo *samplev1alpha1.Foo, conditionType string) metav1.Condition {
	for _, other := range []string{"Ready", "Reconciling", "Stalled"} {
		if meta.IsStatusConditionTrue(foo.Status.Conditions, other) != (other == conditionType) {
			return metav1.Condition{}
		}
	}
	return *meta.FindStatusCondition(foo.Status.Conditions, conditionType)
}
