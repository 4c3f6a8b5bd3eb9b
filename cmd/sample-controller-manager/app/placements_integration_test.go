// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
)

// TestPlacementsAreLoggedOncePerPod cuts the owner chain between an Icecream and its Pods,
// and restores it.
func TestPlacementsAreLoggedOncePerPod(t *testing.T) {
	ns := newNamespace(t)
	server := startDaemon(t, icecreams.oneWorker(), "--status-aggregation-interval=100ms")
	rs := icecreams.createServed(t, ns, "a")
	rs = rs.DeepCopy()
	for i := range 2 {
		createPod(t, ns, fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%d", i), icecreams.labels("a"), controlledBy(rs))
	}
	waitPlacements(t, ns, "a", 2)
	step := 0
	// served waits until the controller has synced everything so far.
	served := func() {
		t.Helper()
		step++
		barrier := fmt.Sprintf("barrier-%d", step)
		icecreams.Create(t, ns, barrier, 1)
		icecreams.waitReplicas(t, ns, barrier, 1)
	}
	deployment := func(patch string) {
		t.Helper()
		if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label := func(value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"controller":%s}}}`, value)
		if _, err := shared.Kube().CoreV1().Pods(ns).Patch(t.Context(), "pod-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	owner := icecreams.controlledBy(icecreams.MustGet(t, ns, "a"))
	for _, test := range []struct {
		name         string
		cut, restore func()
		pods         string // the summary while the chain is cut
	}{
		{"the ReplicaSet is orphaned and adopted", func() { setOwner(t, rs, nil) }, func() { setOwner(t, rs, controlledBy(getDeployment(t, ns, "a"))) }, "none"},
		{"the Deployment is orphaned and adopted", func() { deployment(`{"metadata":{"ownerReferences":null}}`) }, func() {
			deployment(fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":"a","uid":%q,"controller":true}]}}`, owner.APIVersion, owner.Kind, owner.UID))
		}, "none"},
		{"the Deployment is deleted without its ReplicaSet", func() {
			if err := shared.Kube().AppsV1().Deployments(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, func() {
			icecreams.waitReplicas(t, ns, "a", 1)
			setOwner(t, rs, controlledBy(getDeployment(t, ns, "a")))
		}, "none"},
		{"a Pod loses its label and gets it back", func() { label("null") }, func() { label(`"a"`) }, "1/1 ready on node-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cut()
			icecreams.waitPods(t, ns, "a", test.pods)
			served()
			test.restore()
			icecreams.waitPods(t, ns, "a", "2/2 ready on node-0, node-1")
			served()
			waitPlacements(t, ns, "a", 2)
			for pod := range 2 {
				wantPlacementLines(t, server, ns, fmt.Sprintf("pod-%d", pod), 1)
			}
		})
	}

	// A Pod that is deleted before it is placed has no placement. The record of an orphaned
	// Pod is removed when the Pod is deleted.
	createPod(t, ns, "unplaced", "", icecreams.labels("a"), controlledBy(rs))
	icecreams.waitTotal(t, ns, "a", 3)
	deletePod(t, ns, "unplaced")
	setOwner(t, rs, nil)
	icecreams.waitPods(t, ns, "a", "none")
	served()
	waitPlacements(t, ns, "a", 2)
	deletePod(t, ns, "pod-1")
	waitPlacements(t, ns, "a", 1)
	wantPlacementLines(t, server, ns, "unplaced", 0)
}

// wantPlacementLines compares the number of log lines about the placement of a Pod.
func wantPlacementLines(t *testing.T, server *apptesting.Server, ns, pod string, want int) {
	t.Helper()
	got := 0
	for line := range strings.Lines(server.Log()) {
		if strings.Contains(line, "Pod scheduled") && strings.Contains(line, ns+"/"+pod) {
			got++
		}
	}
	if got != want {
		t.Errorf("%d lines about the placement of Pod %s, want %d", got, pod, want)
	}
}
