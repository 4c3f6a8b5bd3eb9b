// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestMain(m *testing.M) { framework.Main(m) }
