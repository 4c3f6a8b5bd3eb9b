// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"os"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == libraryProgram {
		runLibraryProgram(os.Args[2:])
	}
	framework.MainOfAPIServer(m)
}
