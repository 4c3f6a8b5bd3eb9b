// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// availability records the Deployments and Pods of a namespace, and their availability.
type availability struct {
	pods        *framework.History[*corev1.Pod]
	deployments *framework.History[*appsv1.Deployment]
}

func recordAvailability(t *testing.T, ns string) availability {
	t.Helper()
	return availability{
		pods:        framework.Record[*corev1.Pod](t, framework.Kube().CoreV1().Pods(ns).Watch),
		deployments: framework.Record[*appsv1.Deployment](t, framework.Kube().AppsV1().Deployments(ns).Watch),
	}
}

// wantNeverFewer waits until only the Pods of the named Deployment are left. It checks that
// there were never fewer available replicas, neither by the Pods nor by the Deployments.
func (a availability) wantNeverFewer(t *testing.T, ns, name string, want int) {
	t.Helper()
	replicaSets := replicaSetsOf(t, ns, name)
	a.pods.WaitFor(t, "only Pods of Deployment "+name+" are left", func(pods []*corev1.Pod) error {
		ours := 0
		for _, pod := range pods {
			if owner := metav1.GetControllerOf(pod); owner != nil && replicaSets[owner.UID] {
				ours++
			}
		}
		if ours != want || len(pods) != want {
			return fmt.Errorf("%d Pods, %d of them its own, want %d", len(pods), ours, want)
		}
		return nil
	})
	a.deployments.WaitFor(t, "only Deployment "+name+" is left", func(deployments []*appsv1.Deployment) error {
		if len(deployments) != 1 || deployments[0].Name != name {
			return fmt.Errorf("%d Deployments", len(deployments))
		}
		return nil
	})
	a.pods.WantNeverFewer(t, "Pods available", want, func(pod *corev1.Pod) int {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return 1
			}
		}
		return 0
	})
	a.deployments.WantNeverFewer(t, "replicas available", want, func(d *appsv1.Deployment) int {
		if d.DeletionTimestamp != nil {
			return 0
		}
		return int(d.Status.AvailableReplicas)
	})
}

// replicaSetsOf returns the UIDs of a Deployment's ReplicaSets.
func replicaSetsOf(t *testing.T, ns, name string) map[types.UID]bool {
	t.Helper()
	owner := framework.Deployment(t, ns, name).UID
	all, err := framework.Kube().AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for _, rs := range all.Items {
		if controller := metav1.GetControllerOf(&rs); controller != nil && controller.UID == owner {
			uids[rs.UID] = true
		}
	}
	return uids
}
