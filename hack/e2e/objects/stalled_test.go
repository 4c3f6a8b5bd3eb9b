// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestStalledRollouts prevents Deployments from getting their Pods, or makes these unavailable
// once the rollout is complete.
func TestStalledRollouts(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"no Node fits":                        rolloutWithoutNode,
		"Pods are denied":                     rolloutWithoutPods,
		"a Pod crashes after the rollout":     crashAfterRollout,
		"a Pod finds no room after a rollout": noRoomAfterRollout,
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
	pod := makeTwo(t, k, ns)
	setPod(t, ns, pod, "False", `"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s"}`)
	waitUnavailable(t, k, ns, fmt.Sprintf("; Pod %q: CrashLoopBackOff", pod))
	setPod(t, ns, pod, "True", `"running":{}`)
	k.WaitReady(t, ns, "a", 2)
	wantWarning(t, k, ns, "a", "ReplicasUnavailable")
}

// noRoomAfterRollout deletes one of two Pods. No Node has room for its successor.
func noRoomAfterRollout(t *testing.T, k framework.Kind, ns string) {
	pod := makeTwo(t, k, ns)
	blockPods(t, ns)
	framework.Kubectl(t, "-n", ns, "delete", "pod", pod)
	waitUnavailable(t, k, ns, "Insufficient cpu")
	unblockPods(t, ns)
	k.WaitReady(t, ns, "a", 2)
	wantWarning(t, k, ns, "a", "ReplicasUnavailable")
}

// waitUnavailable waits until the object is Stalled because of one of two replicas, and says what
// is wrong with the Pod.
func waitUnavailable(t *testing.T, k framework.Kind, ns, problem string) {
	t.Helper()
	counts := `Deployment "a" has 1 of 2 replicas available, and no more since `
	k.WaitSays(t, ns, "a", "Stalled", "ReplicasUnavailable", counts)
	k.WaitSays(t, ns, "a", "Stalled", "ReplicasUnavailable", problem)
}

// makeTwo creates an object "a" with two Pods, whose Deployment may then make no progress for 3 s.
// It returns the name of one of the Pods.
func makeTwo(t *testing.T, k framework.Kind, ns string) (pod string) {
	t.Helper()
	k.Create(t, ns, "a", 2)
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"progressDeadlineSeconds":3}}`)
	return framework.Kubectl(t, "-n", ns, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
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

// blockPods makes all new Pods request more CPU than any Node has.
func blockPods(t *testing.T, ns string) {
	t.Helper()
	_, err := framework.Kube().CoreV1().LimitRanges(ns).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	setDefaultCPU(t, ns, "1000")
}

// unblockPods makes Pods request almost no CPU, including the pending ones. The LimitRange is
// kept, because the API server may remember a deleted one for a while.
func unblockPods(t *testing.T, ns string) {
	t.Helper()
	setDefaultCPU(t, ns, "1m")
	framework.Kubectl(t, "-n", ns, "delete", "pods", "--field-selector=status.phase=Pending")
}

// setDefaultCPU sets the default CPU request of Pods, and waits until the API server applies
// it.
func setDefaultCPU(t *testing.T, ns, cpu string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":%q}}]}}`, cpu)
	if _, err := framework.Kube().CoreV1().LimitRanges(ns).Patch(t.Context(), "cpu", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	clustertest.WaitUntil(t, "the LimitRange is applied", func(ctx context.Context) error {
		pod, err := framework.Kube().CoreV1().Pods(ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if requests := pod.Spec.Containers[0].Resources.Requests; !requests.Cpu().Equal(resource.MustParse(cpu)) {
			return fmt.Errorf("a Pod requests %v", requests)
		}
		return nil
	})
}
