// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// BenchmarkSync measures a sync with nothing to write, the most frequent case.
func BenchmarkSync(b *testing.B) {
	f := newFixture(b, fooKind(), fooKind().example())
	f.serve()
	b.ReportAllocs()
	for b.Loop() {
		f.sync()
	}
	f.wantCalls()
}

// BenchmarkDecide measures the decision about a Deployment and the computation of the
// status.
func BenchmarkDecide(b *testing.B) {
	f := newFixture(b, fooKind(), fooKind().example())
	f.serve()
	foo := f.object().(*samplev1alpha1.Foo)
	owner := workload.Owner{Object: foo, Kind: f.kind.GroupVersionKind, DeploymentName: deploymentName, Replicas: ptr.To[int32](1)}
	view := workload.View{Live: f.deployment()}
	b.Run("nothing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d := workload.Decide(owner, view); d.Correct != nil || d.Blocker != nil {
				b.Fatalf("decided %+v", d)
			}
		}
	})
	b.Run("patch", func(b *testing.B) {
		other := owner
		other.Replicas = ptr.To[int32](2)
		b.ReportAllocs()
		for b.Loop() {
			if workload.Decide(other, view).Correct == nil {
				b.Fatal("decision has no correction")
			}
		}
	})
	b.Run("status", func(b *testing.B) {
		state, now := workload.State{Deployment: view.Live}, metav1.Now()
		b.ReportAllocs()
		for b.Loop() {
			workload.NewStatus(owner, state, workload.Status{Conditions: foo.Status.Conditions}, now)
		}
	})
}
