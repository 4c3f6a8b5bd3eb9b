// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/e2e/isolation/faulty"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestMain(m *testing.M) {
	faulty.Main() // if this process is a replica
	framework.Main(m)
}
