// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestShortestPositiveDelayCounts(t *testing.T) {
	var r Request[*corev1.ConfigMap]
	for _, d := range []time.Duration{-time.Second, 0} {
		if r.RequeueAfter(d); r.after != 0 || r.asked {
			t.Errorf("RequeueAfter(%v) requeues after %v, want no effect", d, r.after)
		}
	}
	for _, d := range []time.Duration{time.Minute, time.Second, time.Hour, 0} {
		r.RequeueAfter(d)
	}
	if r.after != time.Second || !r.asked {
		t.Errorf("requeues after %v, want the shortest delay of 1s", r.after)
	}
}
