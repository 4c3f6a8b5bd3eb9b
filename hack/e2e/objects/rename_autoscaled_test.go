// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

func renameToATakenNameAutoscaled(t *testing.T, k framework.Kind, ns string) {
	placeForeign(t, k, ns)
	renameAutoscaled(t, k, ns, "DeploymentConflict", func() { deleteWeb(t, k, ns) })
}

func renameBeyondTheQuotaAutoscaled(t *testing.T, k framework.Kind, ns string) {
	framework.ExpectDenialsIn(ns)
	quotas := framework.Kube().CoreV1().ResourceQuotas(ns)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("1")}},
	}
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.WaitUntil(t, "the quota is enforced", func(ctx context.Context) error {
		quota, err := quotas.Get(ctx, "one", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errors.New("not yet")
		}
		return err
	})
	renameAutoscaled(t, k, ns, "WriteDenied", func() {
		if err := quotas.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// renameAutoscaled renames an object, which an autoscaler scales, to "web", a Deployment that
// cannot be created until unblock is called. Until then the autoscaler scales the former one.
func renameAutoscaled(t *testing.T, k framework.Kind, ns, reason string, unblock func()) {
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: ptr.To[int32](1)})
	k.WaitReady(t, ns, "a", 1)
	autoscale(t, ns, "a", k.GroupVersionKind, "a", 2, 9)
	k.WaitReady(t, ns, "a", 2)
	rename(t, k, ns, "web")
	k.WaitSays(t, ns, "a", "Stalled", reason, `the former Deployment "one" is kept, with 2 of 2 replicas available`)

	bound(t, ns, "a", 4, 9)
	k.WaitSays(t, ns, "a", "Stalled", reason, `the former Deployment "one" is kept, with 4 of 4 replicas available`)
	waitReported(t, k, ns, "one", 4)
	waitContent(t, ns, "a", 4)
	waitScalingActive(t, ns, "a", "FailedGetResourceMetric") // not InvalidSelector

	unblock()
	k.WaitReady(t, ns, "a", 4)
	bound(t, ns, "a", 5, 9)
	k.WaitReady(t, ns, "a", 5)
	waitReported(t, k, ns, "web", 5)
	waitContent(t, ns, "a", 5)
	if got := *framework.Deployment(t, ns, "one").Spec.Replicas; got != 4 {
		t.Errorf("the former Deployment was scaled to %d, want 4 as before", got)
	}
}
