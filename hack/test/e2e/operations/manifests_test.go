// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestBaseIsAdmitted installs manifests/base like an operator. Its namespace is restricted.
// Violations cause a warning when the Deployment is applied, and Pods that are never created.
func TestBaseIsAdmitted(t *testing.T) {
	framework.Kubectl(t, "apply", "--warnings-as-errors", "-k", framework.Manifests(t, "base"))
	framework.Kubectl(t, "rollout", "status", "-n", framework.DaemonName, "deployment/"+framework.DaemonName, "--timeout=300s")
	t.Cleanup(func() {
		// The other tests need the rest of the base.
		if _, err := framework.Cluster().Kubectl(context.WithoutCancel(t.Context()), "delete", "-n", framework.DaemonName, "deployment,service,pdb",
			framework.DaemonName); err != nil {
			t.Error(err)
		}
	})

	// The effects show that selectors and names match.
	clustertest.WaitUntil(t, "the PodDisruptionBudget lets one Pod be evicted", func(ctx context.Context) error {
		budget, err := framework.Kube().PolicyV1().PodDisruptionBudgets(framework.DaemonName).Get(ctx, framework.DaemonName,
			metav1.GetOptions{})
		if err == nil && (budget.Status.ExpectedPods != 2 || budget.Status.DisruptionsAllowed != 1) {
			err = fmt.Errorf("of %d Pods %d may be evicted, want 1 of 2", budget.Status.ExpectedPods, budget.Status.DisruptionsAllowed)
		}
		return err
	})
	clustertest.WaitUntil(t, "the Service has the Pods as endpoints", func(ctx context.Context) error {
		slices, err := framework.Kube().DiscoveryV1().EndpointSlices(framework.DaemonName).List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + framework.DaemonName})
		if err != nil {
			return err
		}
		if len(slices.Items) != 1 || len(slices.Items[0].Ports) != 1 || len(slices.Items[0].Endpoints) != 2 {
			return fmt.Errorf("endpoints %v, want one port of 2 Pods", slices.Items)
		}
		return nil
	})

	_, err := framework.Cluster().Kubectl(t.Context(), "run", "intruder", "-n", framework.DaemonName, "--image=none", "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a Pod without a security context: %v, want it to be denied", err)
	}
}

func TestExamplesAreValid(t *testing.T) {
	framework.Kubectl(t, "apply", "--warnings-as-errors", "--dry-run=server", "-n", framework.NewNamespace(t), "-f", framework.Manifests(t, "examples"))
}
