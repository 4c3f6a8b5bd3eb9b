// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// TestForeignStatusIsCorrected edits the status as another client, or leaves it as an earlier version of the
// program wrote it.
func TestForeignStatusIsCorrected(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Made", LastTransitionTime: metav1.Unix(0, 0)}
	}
	run(t, func(t *testing.T, e env) {
		e.serve()
		want := e.foo().Status
		for what, edit := range map[string]func(*samplev1alpha1.FooStatus){
			"counts":         func(s *samplev1alpha1.FooStatus) { s.AvailableReplicas, s.Selector = 99, "a=b" },
			"a time":         func(s *samplev1alpha1.FooStatus) { s.UnavailableSince = &metav1.Time{Time: time.Unix(0, 0)} },
			"no conditions":  func(s *samplev1alpha1.FooStatus) { s.Conditions = nil },
			"nothing at all": func(s *samplev1alpha1.FooStatus) { *s = samplev1alpha1.FooStatus{} },
			"an invented condition": func(s *samplev1alpha1.FooStatus) {
				s.Conditions = append([]metav1.Condition{condition("Stalled", "True")}, s.Conditions...)
			},
			"False conditions, as earlier versions wrote them": func(s *samplev1alpha1.FooStatus) {
				s.Conditions = append(s.Conditions, condition("Reconciling", "False"), condition("Stalled", "False"))
			},
		} {
			e.change(func(f *samplev1alpha1.Foo) { edit(&f.Status) })
			e.pass(2 * time.Second)
			if diff := cmp.Diff(want, e.foo().Status, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
}

// TestUnavailableReplicasStallDespiteNewLeader makes replicas unavailable after the rollout. The time since when
// they are is in the status, so a new leader does not begin again.
func TestUnavailableReplicasStallDespiteNewLeader(t *testing.T) {
	complete := func(n int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			available(n)(d)
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
			}}
		}
	}
	run(t, func(t *testing.T, e env) {
		e.serve(withReplicas(2))
		e.rollOut(complete(1))
		e.pass(time.Minute)
		since := e.foo().Status.UnavailableSince
		e.LoseLead()
		e.rollOut(complete(0)) // fewer, which the new leader writes
		e.Lead()
		e.pass(9*time.Minute - 2*time.Second)
		if s := e.foo().Status; s.AvailableReplicas != 0 || since == nil || !since.Equal(s.UnavailableSince) {
			t.Errorf("unavailable since %v, want still %v, and none available: %+v", s.UnavailableSince, since, s)
		}
		if c := e.condition("Stalled"); c.Status == "True" {
			t.Errorf("Stalled = %+v before the deadline", c)
		}
		e.pass(2 * time.Second)
		if c := e.condition("Stalled"); c.Reason != "ReplicasUnavailable" {
			t.Errorf("Stalled = %+v, want ReplicasUnavailable", c)
		}
		e.wantEvents("Warning ReplicasUnavailable " + e.condition("Stalled").Message)
		e.rollOut(complete(2))
		e.pass(time.Second)
		if s := e.foo().Status; s.UnavailableSince != nil || e.condition("Ready").Status != "True" {
			t.Errorf("status %+v, want Ready, and no time", s)
		}
		e.wantEvents(synced)
	})
}
