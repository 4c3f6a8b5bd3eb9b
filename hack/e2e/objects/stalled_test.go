// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestStalledRollouts prevents Deployments from getting their Pods.
func TestStalledRollouts(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"no Node fits":    rolloutWithoutNode,
		"Pods are denied": rolloutWithoutPods,
	})
}

func rolloutWithoutNode(t *testing.T, k framework.Kind, ns string) {
	k.Create(t, ns, "a", 2)
	k.WaitReady(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p",
		`{"spec":{"progressDeadlineSeconds":3,"template":{"spec":{"nodeSelector":{"is":"nowhere"}}}}}`)
	k.WaitSays(t, ns, "a", "Stalled", "ProgressDeadlineExceeded", "has timed out progressing")
	wantWarning(t, k, ns, "a", "ProgressDeadlineExceeded")
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	k.WaitReady(t, ns, "a", 2)
	wantWarning(t, k, ns, "a", "ProgressDeadlineExceeded")
	if got := framework.Kubectl(t, "-n", ns, "get", "deployment", "a", "-o", "jsonpath={.spec.progressDeadlineSeconds}"); got != "3" {
		t.Errorf("progressDeadlineSeconds = %s, want the 3 of whoever set it", got)
	}
}

func rolloutWithoutPods(t *testing.T, k framework.Kind, ns string) {
	const reason = `violates PodSecurity "restricted:latest"`
	framework.Kubectl(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	k.Create(t, ns, "a", 2)
	k.WaitSays(t, ns, "a", "Reconciling", "Progressing", reason)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"progressDeadlineSeconds":1}}`)
	k.WaitSays(t, ns, "a", "Stalled", "ProgressDeadlineExceeded", reason)
	wantWarning(t, k, ns, "a", "ProgressDeadlineExceeded")
	framework.Kubectl(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce-")
	k.WaitReady(t, ns, "a", 2)
}
