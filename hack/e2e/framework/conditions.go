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

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// WaitMessage waits until a condition of an object is True, for its present
// generation, with a reason and a message that begins as given, and no other of
// ours is True.
func (k Kind) WaitMessage(t *testing.T, ns, name, conditionType, reason, message string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is %s for %s", k.Kind, name, conditionType, reason), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err != nil {
			return err
		}
		c := ConditionOf(object, conditionType)
		if c.Reason != reason || !strings.HasPrefix(c.Message, message) || object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("generation %d, status %+v", object.Generation, object.Status)
		}
		return nil
	})
}

// ConditionOf returns the condition if it is True, and no other of ours is.
func ConditionOf(object *samplev1alpha1.Foo, conditionType string) metav1.Condition {
	for _, other := range []string{"Ready", "Reconciling", "Stalled"} {
		if meta.IsStatusConditionTrue(object.Status.Conditions, other) != (other == conditionType) {
			return metav1.Condition{}
		}
	}
	return *meta.FindStatusCondition(object.Status.Conditions, conditionType)
}

// WaitObserved waits until an object has a status of the given generation.
func (k Kind) WaitObserved(t *testing.T, ns, name string, generation int64) {
	t.Helper()
	clustertest.WaitUntil(t, "the object has a status", func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err == nil && object.Status.ObservedGeneration != generation {
			err = fmt.Errorf("of generation %d", object.Status.ObservedGeneration)
		}
		return err
	})
}

// WaitSays waits until a condition of an object is True for a reason, and its message
// and that of Ready have the given words.
func (k Kind) WaitSays(t *testing.T, ns, name, conditionType, reason, words string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is %s for %s", k.Kind, name, conditionType, reason), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err != nil {
			return err
		}
		c, ready := ConditionOf(object, conditionType), meta.FindStatusCondition(object.Status.Conditions, "Ready")
		if c.Reason != reason || !strings.Contains(c.Message, words) || ready == nil || !strings.Contains(ready.Message, words) {
			return fmt.Errorf("conditions %+v", object.Status.Conditions)
		}
		return nil
	})
}
