// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// wantCalls compares the calls of the kind's controller in a namespace.
func wantCalls(t *testing.T, k framework.Kind, ns string, want ...string) {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns))
	var got []string
	for _, event := range events {
		got = append(got, cluster.Call(event))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.Controller, diff)
	}
}
