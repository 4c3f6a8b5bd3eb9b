// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestStalledRollouts prevents Deployments from getting their Pods, or makes these unavailable
// once the rollout is complete.
func TestStalledRollouts(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"no Node fits":                    rolloutWithoutNode,
		"Pods are denied":                 rolloutWithoutPods,
		"a Pod crashes after the rollout": crashAfterRollout,
	})
}

func rolloutWithoutNode(t *testing.T, k framework.Kind, ns string) {
	k.Create(t, ns, "a", 2)
	k.WaitReady(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p",
		`{"spec":{"progressDeadlineSeconds":3,"template":{"spec":{"nodeSelector":{"is":"nowhere"}}}}}`)
	k.WaitSays(t, ns, "a", "Stalled", "ProgressDeadlineExceeded", "has timed out progressing")
	wantWarning(t, k, ns, "a", "ProgressDeadlineExceeded")
	// On a busy machine the next rollout may take longer than 3 s.
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p",
		`{"spec":{"progressDeadlineSeconds":300,"template":{"spec":{"nodeSelector":null}}}}`)
	k.WaitReady(t, ns, "a", 2)
	wantWarning(t, k, ns, "a", "ProgressDeadlineExceeded")
	if got := framework.Kubectl(t, "-n", ns, "get", "deployment", "a", "-o", "jsonpath={.spec.progressDeadlineSeconds}"); got != "300" {
		t.Errorf("progressDeadlineSeconds = %s, want 300, as set by the other client", got)
	}
}

// rolloutWithoutPods lets admission deny Pods, and then does what the manual says.
func rolloutWithoutPods(t *testing.T, k framework.Kind, ns string) {
	counts, reason, fix := restrictedAdvice(t)
	framework.Kubectl(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	k.Create(t, ns, "web", 1)
	k.WaitSays(t, ns, "web", "Reconciling", "Progressing", counts)
	k.WaitSays(t, ns, "web", "Reconciling", "Progressing", reason)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "-p", `{"spec":{"progressDeadlineSeconds":1}}`)
	k.WaitSays(t, ns, "web", "Stalled", "ProgressDeadlineExceeded", reason)
	wantWarning(t, k, ns, "web", "ProgressDeadlineExceeded")
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "-p", fix)
	k.WaitReady(t, ns, "web", 1)
	k.Patch(t, ns, "web", `{"spec":{"image":"nginxinc/nginx-unprivileged"}}`)
	k.WaitReady(t, ns, "web", 1)
}

// crashAfterRollout makes one of two Pods crash. The deployment controller does not report it.
func crashAfterRollout(t *testing.T, k framework.Kind, ns string) {
	k.Create(t, ns, "a", 2)
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"progressDeadlineSeconds":3}}`)
	pod := framework.Kubectl(t, "-n", ns, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
	setPod(t, ns, pod, "False", `"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s"}`)
	for _, part := range []string{
		`Deployment "a" has 1 of 2 replicas available, and no more since `, fmt.Sprintf("; Pod %q: CrashLoopBackOff", pod),
	} {
		k.WaitSays(t, ns, "a", "Stalled", "ReplicasUnavailable", part)
	}
	setPod(t, ns, pod, "True", `"running":{}`)
	k.WaitReady(t, ns, "a", 2)
	wantWarning(t, k, ns, "a", "ReplicasUnavailable")
}

// setPod sets the condition Ready of a Pod and the state of its container, like a kubelet.
func setPod(t *testing.T, ns, pod, ready, state string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "patch", "pod", pod, "--subresource=status", "-p", fmt.Sprintf(
		`{"status":{"conditions":[{"type":"Ready","status":%q}],`+
			`"containerStatuses":[{"name":"nginx","image":"nginx","imageID":"","ready":%t,"restartCount":7,"state":{%s}}]}}`,
		ready, ready == "True", state))
}

// restrictedAdvice returns, from the manual, the message of a Foo whose Pods are too
// privileged, before and after the name of a Pod, and the patch that helps.
func restrictedAdvice(t *testing.T) (counts, reason, patch string) {
	t.Helper()
	page, err := os.ReadFile(framework.Manifests(t, "docs/objects.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?s)### In a restricted namespace\n.*?```text\n(.*? pods \"web-)[^\"]*(\" is forbidden: violates .*?)\n```.*? -p '(.*?)'\n```")
	found := section.FindSubmatch(page)
	if found == nil {
		t.Fatal("the manual does not say what a Foo says in a restricted namespace")
	}
	return string(found[1]), string(found[2]), string(found[3])
}
