// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// SampleController returns the path of Kubernetes' sample-controller, and builds it if
// necessary.
func SampleController(t *testing.T) string {
	t.Helper()
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "sample-controller")
	if err != nil {
		t.Fatal(err)
	}
	return paths["sample-controller"]
}

// StartSampleController starts it as its README describes. It has no manifests, so it runs as
// a cluster admin.
func StartSampleController(t *testing.T) *Program {
	t.Helper()
	return StartProgram(t, SampleController(t), "-kubeconfig="+Cluster().Kubeconfig)
}
