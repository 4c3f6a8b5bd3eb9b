// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// BenchmarkSummary measures the summary of this many Pods on 100 nodes.
//
//	go test -run '^$' -bench Summary ./pkg/controller/statusaggregator
func BenchmarkSummary(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d Pods", n), func(b *testing.B) {
			var records []*pods.Record
			for i := range n {
				records = append(records, record(fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%d", i%100), corev1.PodRunning, ready))
			}
			b.ReportAllocs()
			for b.Loop() {
				summarize(records)
			}
		})
	}
}
