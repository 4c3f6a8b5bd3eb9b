// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// renameToATakenName renames an object, which an autoscaler scales, to "web", a Deployment
// that cannot be created yet. The autoscaler goes on with the former Deployment.
func renameToATakenName(t *testing.T, k framework.Kind, ns string) {
	placeForeign(t, k, ns)
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: ptr.To[int32](1)})
	k.WaitReady(t, ns, "a", 1)
	autoscale(t, ns, "a", k.GroupVersionKind, "a", 2, 9)
	k.WaitReady(t, ns, "a", 2)
	rename(t, k, ns, "web")
	k.WaitSays(t, ns, "a", "Stalled", "DeploymentConflict", `the former Deployment "one" is kept, with 2 of 2 replicas available`)

	bound(t, ns, "a", 4, 9)
	k.WaitSays(t, ns, "a", "Stalled", "DeploymentConflict", `the former Deployment "one" is kept, with 4 of 4 replicas available`)
	waitReported(t, k, ns, "one", 4)
	waitContent(t, ns, "a", 4)
	waitScalingActive(t, ns, "a", "FailedGetResourceMetric") // not InvalidSelector

	deleteWeb(t, k, ns)
	k.WaitReady(t, ns, "a", 4)
	bound(t, ns, "a", 5, 9)
	k.WaitReady(t, ns, "a", 5)
	waitReported(t, k, ns, "web", 5)
	waitContent(t, ns, "a", 5)
	if got := *framework.Deployment(t, ns, "one").Spec.Replicas; got != 4 {
		t.Errorf("the former Deployment was scaled to %d, want 4 as before", got)
	}
}
