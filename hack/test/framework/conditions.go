// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// waitObject waits until is returns true for an object.
func (k Kind) waitObject(t *testing.T, ns, name, what string, is func(object *samplev1alpha1.Foo) bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s %s", k.Kind, name, what), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err == nil && !is(object) {
			err = fmt.Errorf("generation %d, status %+v", object.Generation, object.Status)
		}
		return err
	})
}

// WaitReady waits until an object is Ready in its current generation, with this many replicas.
func (k Kind) WaitReady(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	k.waitObject(t, ns, name, fmt.Sprintf("is ready with %d replicas", replicas), func(object *samplev1alpha1.Foo) bool {
		s := object.Status
		return meta.IsStatusConditionTrue(s.Conditions, "Ready") && s.ObservedGeneration == object.Generation &&
			int(s.AvailableReplicas) == replicas && int(s.Replicas) == replicas
	})
}

// WaitStalled waits until an object is Stalled in its current generation.
func (k Kind) WaitStalled(t *testing.T, ns, name string) {
	t.Helper()
	k.waitObject(t, ns, name, "is stalled", func(object *samplev1alpha1.Foo) bool {
		return meta.IsStatusConditionTrue(object.Status.Conditions, "Stalled") &&
			object.Status.ObservedGeneration == object.Generation
	})
}

// WaitMessage waits until a condition of an object is True for the current generation, with
// this reason and a message that starts with message. None of our other conditions may be True.
func (k Kind) WaitMessage(t *testing.T, ns, name, conditionType, reason, message string) {
	t.Helper()
	k.waitObject(t, ns, name, fmt.Sprintf("is %s for %s", conditionType, reason), func(object *samplev1alpha1.Foo) bool {
		c := conditionOf(object, conditionType)
		return c.Reason == reason && strings.HasPrefix(c.Message, message) &&
			object.Status.ObservedGeneration == object.Generation
	})
}

// WaitSays waits until a condition of an object is True for a reason, and both its message and
// that of Ready contain these words.
func (k Kind) WaitSays(t *testing.T, ns, name, conditionType, reason, words string) {
	t.Helper()
	k.waitObject(t, ns, name, fmt.Sprintf("is %s for %s", conditionType, reason), func(object *samplev1alpha1.Foo) bool {
		c, ready := conditionOf(object, conditionType), meta.FindStatusCondition(object.Status.Conditions, "Ready")
		return c.Reason == reason && strings.Contains(c.Message, words) && ready != nil &&
			strings.Contains(ready.Message, words)
	})
}

// WaitObserved waits until an object has a status of the given generation.
func (k Kind) WaitObserved(t *testing.T, ns, name string, generation int64) {
	t.Helper()
	k.waitObject(t, ns, name, "has a status",
		func(object *samplev1alpha1.Foo) bool { return object.Status.ObservedGeneration == generation })
}

// conditionOf returns the condition if it is the only one of ours that is True.
func conditionOf(object *samplev1alpha1.Foo, conditionType string) metav1.Condition {
	for _, other := range []string{"Ready", "Reconciling", "Stalled"} {
		if meta.IsStatusConditionTrue(object.Status.Conditions, other) != (other == conditionType) {
			return metav1.Condition{}
		}
	}
	return *meta.FindStatusCondition(object.Status.Conditions, conditionType)
}
