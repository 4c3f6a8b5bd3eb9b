// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// BenchmarkDecide measures the decision about a Deployment and the computation of the
// status.
func BenchmarkDecide(b *testing.B) {
	view, current := view{Live: deployment()}, NewStatus(owner(), State{Deployment: deployment()},
		workloadv1alpha1.Status{}, later)
	for name, decide := range map[string]func(b *testing.B){
		"nothing": func(b *testing.B) {
			if d := decide(owner(), view); d.writes() || d.Blocker != nil {
				b.Fatalf("decided %+v", d)
			}
		},
		"patch": func(b *testing.B) {
			if !decide(owner(wantReplicas(ptr.To[int32](2))), view).writes() {
				b.Fatal("decision has no correction")
			}
		},
		"status": func(*testing.B) {
			NewStatus(owner(), State{Deployment: view.Live}, current, metav1.Time{Time: present})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decide(b)
			}
		})
	}
}
