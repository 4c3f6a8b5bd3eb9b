// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
)

// TestFinishedPodsAreNotCounted has evicted Pods beside running ones, and one that is deleted
// while its node does not respond.
func TestFinishedPodsAreNotCounted(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		const evicted = 6
		ns := newNamespace(t)
		server := startDaemon(t, "--status-aggregation-interval=100ms")
		rs := controlledBy(k.createServed(t, ns, "a"))
		placed := func(want int) {
			t.Helper()
			if k.Kind == icecreams.Kind {
				waitPlacements(t, ns, "a", want)
			}
		}
		for i := range evicted {
			createPod(t, ns, fmt.Sprintf("evicted-%d", i), "node-2", k.labels("a"), rs)
		}
		k.waitPods(t, ns, "a", "6/6 ready on node-2 (6)")
		for i := range evicted {
			setPhase(t, ns, fmt.Sprintf("evicted-%d", i), corev1.PodFailed, "Evicted")
		}
		stopped := createPod(t, ns, "stopped", "node-1", k.labels("a"), rs)
		crashing := createPod(t, ns, "crashing", "node-1", k.labels("a"), rs)
		k.waitPods(t, ns, "a", "2/2 ready on node-1 (2); 6 Evicted")
		placed(2)

		setPod(t, crashing, func(status *corev1.PodStatus) {
			status.Conditions[0].Status = corev1.ConditionFalse
			waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", Image: "nginx", State: waiting}}
		})
		pods := k.waitPods(t, ns, "a", "1/2 ready on node-1 (2); 1 CrashLoopBackOff, 6 Evicted")
		if want := (workloadv1alpha1.PodProblem{Pod: "crashing", Reason: "CrashLoopBackOff"}); pods.Problems[0] != want {
			t.Errorf("problems = %+v, want first %+v", pods.Problems, want)
		}

		// A Pod with a grace period stays until its kubelet has stopped it.
		hour := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](3600)}
		if err := shared.Kube().CoreV1().Pods(ns).Delete(t.Context(), stopped.Name, hour); err != nil {
			t.Fatal(err)
		}
		k.waitPods(t, ns, "a", "0/1 ready on node-1; 1 CrashLoopBackOff, 6 Evicted; 1 terminating")
		placed(2)
		setPhase(t, ns, stopped.Name, corev1.PodSucceeded, "")
		k.waitPods(t, ns, "a", "0/1 ready on node-1; 1 CrashLoopBackOff, 6 Evicted")
		placed(1)
		if k.Kind == icecreams.Kind {
			wantOneLineEach(t, ns, server, rs, evicted)
		}
	})
}

// setPhase sets the phase and the reason of a Pod.
func setPhase(t *testing.T, ns, name string, phase corev1.PodPhase, reason string) {
	t.Helper()
	pod, err := shared.Kube().CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	setPod(t, pod, func(status *corev1.PodStatus) { status.Phase, status.Reason = phase, reason })
}

// wantOneLineEach compares the lines about placements before and after a change of leader.
func wantOneLineEach(t *testing.T, ns string, server *apptesting.Server, rs *metav1.OwnerReference, evicted int) {
	t.Helper()
	lines := func(want int) {
		t.Helper()
		for i := range evicted {
			wantPlacementLines(t, server, ns, fmt.Sprintf("evicted-%d", i), want)
		}
		wantPlacementLines(t, server, ns, "stopped", want)
		wantPlacementLines(t, server, ns, "crashing", want)
	}
	lines(1)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server = startDaemon(t, "--status-aggregation-interval=100ms")
	deletePod(t, ns, "evicted-0")
	deletePod(t, ns, "stopped")
	createPod(t, ns, "late", "node-1", icecreams.labels("a"), rs)
	waitPlacements(t, ns, "a", 2)
	lines(0)
	wantPlacementLines(t, server, ns, "late", 1)
}
