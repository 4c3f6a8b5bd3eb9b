// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// install installs the CRDs.
func install(t *testing.T, _ framework.Kind) {
	t.Helper()
	if err := framework.Cluster().Install(t.Context()); err != nil {
		t.Fatal(err)
	}
}
