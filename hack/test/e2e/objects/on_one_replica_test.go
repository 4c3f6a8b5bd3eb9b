// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// onOneReplica runs tests in parallel, for each kind and in separate namespaces, with one
// replica for all. Each of its controllers has one worker, as [framework.Kind.WaitIdle]
// requires.
func onOneReplica(t *testing.T, tests map[string]func(t *testing.T, k framework.Kind, ns string)) {
	framework.FreeLease(t)
	r := framework.StartReplica(t, framework.OneWorker...).Ready()
	framework.OverKinds(t, func(t *testing.T, k framework.Kind) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, k, framework.NewNamespace(t))
			})
		}
	})
	r.Stop()
}
