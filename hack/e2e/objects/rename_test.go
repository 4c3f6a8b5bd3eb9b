// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestRename changes spec.deploymentName of an object "a" whose Deployment "one" has three
// replicas, declared by the object or set by another client.
func TestRename(t *testing.T) {
	declared, absent := ptr.To[int32](3), (*int32)(nil)
	with := func(replicas *int32, test func(t *testing.T, k framework.Kind, ns string, replicas *int32)) func(t *testing.T, k framework.Kind, ns string) {
		return func(t *testing.T, k framework.Kind, ns string) { test(t, k, ns, replicas) }
	}
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"while available, replicas set":        with(declared, renameWhileAvailable),
		"while available, replicas absent":     with(absent, renameWhileAvailable),
		"while not available, replicas absent": with(absent, renameWhileNotAvailable),
		"never available, replicas set":        with(declared, renameNeverAvailable),
		"in quick succession, replicas absent": with(absent, renameInQuickSuccession),
		"to a taken name":                      renameToATakenName,
	})
}

// renameWhileAvailable renames the Deployment, and back once that is done.
func renameWhileAvailable(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	makeThree(t, k, ns, replicas)
	first := framework.Deployment(t, ns, "one")

	rename(t, k, ns, "two")
	k.WaitReady(t, ns, "a", 3)
	wantOnly(t, k, ns, "a", "two")
	served.wantNeverFewer(t, ns, "two", 3)

	// Back, to a new Deployment of the old name.
	rename(t, k, ns, "one")
	k.WaitReady(t, ns, "a", 3)
	if wantOnly(t, k, ns, "a", "one"); framework.Deployment(t, ns, "one").UID == first.UID {
		t.Error("Deployment one is still the first one, want a new one")
	}
	served.wantNeverFewer(t, ns, "one", 3)
}

// renameWhileNotAvailable renames to Deployments whose Pods cannot run.
func renameWhileNotAvailable(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	makeThree(t, k, ns, replicas)
	before := framework.TakeSnapshot(t, ns)
	blockPods(t, ns)

	// Whatever happens to the unavailable Deployments, the available one is kept.
	rename(t, k, ns, "two")
	waitPending(t, k, ns, 3, "one", "two")
	rename(t, k, ns, "three")
	waitPending(t, k, ns, 3, "one", "three")
	k.WaitIdle(t)
	waitPending(t, k, ns, 3, "one", "three")

	// Back to the available Deployment, which is then the only one again.
	rename(t, k, ns, "one")
	k.WaitReady(t, ns, "a", 3)
	wantOnly(t, k, ns, "a", "one")
	served.wantNeverFewer(t, ns, "one", 3)
	if diff := cmp.Diff(before.Pods, framework.TakeSnapshot(t, ns).Pods); diff != "" {
		t.Errorf("the available Pods changed (-before +after):\n%s", diff)
	}

	// Twice in a row. Then the second Deployment becomes available.
	rename(t, k, ns, "two")
	rename(t, k, ns, "three")
	waitPending(t, k, ns, 3, "one", "three")
	unblockPods(t, ns)
	k.WaitReady(t, ns, "a", 3)
	wantOnly(t, k, ns, "a", "three")
	served.wantNeverFewer(t, ns, "three", 3)
}

// renameNeverAvailable renames an object that was never available: there is nothing to wait
// for.
func renameNeverAvailable(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	blockPods(t, ns)
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: replicas})
	waitPending(t, k, ns, 3, "one")
	for _, name := range []string{"two", "three", "one"} {
		rename(t, k, ns, name)
		waitPending(t, k, ns, 3, name)
	}
	unblockPods(t, ns)
	k.WaitReady(t, ns, "a", 3)
	wantOnly(t, k, ns, "a", "one")
}

// renameInQuickSuccession renames repeatedly without waiting for the effect.
func renameInQuickSuccession(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	makeThree(t, k, ns, replicas)
	names := []string{"two", "three", "one"}
	for i := range 12 {
		rename(t, k, ns, names[i%3])
		if i%4 == 3 { // so that the renames do not always overlap in the same way
			framework.WaitDeployment(t, ns, names[i%3])
		}
	}
	k.WaitReady(t, ns, "a", 3)
	wantOnly(t, k, ns, "a", "one")
	served.wantNeverFewer(t, ns, "one", 3)
}

// renameToATakenName gives an available object the name of another object's Deployment.
func renameToATakenName(t *testing.T, k framework.Kind, ns string) {
	makeThree(t, k, ns, nil)
	framework.Kubectl(t, "-n", ns, "create", "deployment", "taken", "--image=nginx")
	framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/taken", "--timeout=60s")
	before := framework.TakeSnapshot(t, ns)
	rename(t, k, ns, "taken")
	k.WaitStalled(t, ns, "a")
	k.WaitIdle(t)
	rename(t, k, ns, "one")
	k.WaitReady(t, ns, "a", 3)
	k.WaitIdle(t)
	framework.WantSameSnapshot(t, "a rename to a taken name, and back", ns, before)
}

// makeThree creates object "a" with Deployment "one" and waits until that has three replicas,
// which are declared, or set by another client.
func makeThree(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	t.Helper()
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: replicas})
	framework.WaitDeployment(t, ns, "one")
	if replicas == nil {
		framework.Kubectl(t, "-n", ns, "scale", "deployment/one", "--replicas=3")
	}
	k.WaitReady(t, ns, "a", 3)
}

func rename(t *testing.T, k framework.Kind, ns, name string) {
	t.Helper()
	k.Patch(t, ns, "a", fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, name))
}

// wantOnly waits until the namespace has exactly one Deployment, and checks that the object
// names and owns it.
func wantOnly(t *testing.T, k framework.Kind, ns, owner, name string) {
	t.Helper()
	waitDeployments(t, ns, name)
	wantOwned(t, k, ns, owner, name)
}

// waitDeployments waits until the namespace has exactly the named Deployments.
func waitDeployments(t *testing.T, ns string, names ...string) {
	t.Helper()
	slices.Sort(names)
	clustertest.WaitUntil(t, fmt.Sprintf("the Deployments are %v", names), func(ctx context.Context) error {
		all, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, d := range all.Items {
			got = append(got, d.Name)
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

// waitPending waits until the namespace has exactly the named Deployments, the last of them
// has this many replicas, none of them available, and the object reports the transition to it.
func waitPending(t *testing.T, k framework.Kind, ns string, replicas int32, names ...string) {
	t.Helper()
	last := names[len(names)-1]
	waitDeployments(t, ns, names...)
	clustertest.WaitUntil(t, "all replicas of Deployment "+last+" are pending", func(ctx context.Context) error {
		d, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, last, metav1.GetOptions{})
		if err == nil && (d.Status.Replicas != replicas || d.Status.UnavailableReplicas != replicas || *d.Spec.Replicas != replicas) {
			err = fmt.Errorf("%d replicas wanted, status %+v", *d.Spec.Replicas, d.Status)
		}
		return err
	})
	k.WaitMessage(t, ns, "a", "Reconciling", "Progressing", fmt.Sprintf(`Deployment %q has 0 of %d replicas available`, last, replicas))
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
