// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
	"samplecontroller.io/sample-controller-manager/hack/e2e/isolation/faulty"
)

func TestMain(m *testing.M) {
	faulty.Main() // if this process is a replica
	framework.Main(m)
}
