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

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// oneWorker are the flags of a replica that syncs one object of a kind after another.
var oneWorker = []string{"--concurrent-foo-syncs=1", "--concurrent-icecream-syncs=1"}

// onOneReplica runs tests side by side, each for each kind in a namespace of its own,
// while one replica serves them all. Each of its controllers has one worker, so that
// [kind.waitIdle] can be used.
func onOneReplica(t *testing.T, tests map[string]func(t *testing.T, k kind, ns string)) {
	freeLease(t)
	r := startReplica(t, oneWorker...).ready()
	overKinds(t, func(t *testing.T, k kind) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, k, newNamespace(t))
			})
		}
	})
	r.stop()
	wantNoDenials(t)
}

// waitMessage waits until a condition of an object is True, for its present
// generation, with a reason and a message that begins as given, and no other of
// ours is True.
func (k kind) waitMessage(t *testing.T, ns, name, conditionType, reason, message string) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%s %s is %s for %s", k.Kind, name, conditionType, reason), func(ctx context.Context) error {
		object, err := k.get(ctx, ns, name)
		if err != nil {
			return err
		}
		c := conditionOf(object, conditionType)
		if c.Reason != reason || !strings.HasPrefix(c.Message, message) || object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("generation %d, status %+v", object.Generation, object.Status)
		}
		return nil
	})
}

// conditionOf returns the condition if it is True, and no other of ours is.
func conditionOf(object *samplev1alpha1.Foo, conditionType string) metav1.Condition {
	for _, other := range []string{"Ready", "Reconciling", "Stalled"} {
		if meta.IsStatusConditionTrue(object.Status.Conditions, other) != (other == conditionType) {
			return metav1.Condition{}
		}
	}
	return *meta.FindStatusCondition(object.Status.Conditions, conditionType)
}
