// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

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
)

// TestRename changes spec.deploymentName of an object "a" whose Deployment is "one"
// and has three replicas, declared by the object or set by somebody else.
func TestRename(t *testing.T) {
	tests := map[string]func(t *testing.T, k kind, ns string){"to a name that is taken": renameToATakenName}
	for declared, replicas := range map[string]*int32{"replicas set": ptr.To[int32](3), "replicas absent": nil} {
		for name, test := range map[string]func(t *testing.T, k kind, ns string, replicas *int32){
			"while available":     renameWhileAvailable,
			"while not available": renameWhileNotAvailable,
			"never available":     renameNeverAvailable,
			"in quick succession": renameInQuickSuccession,
		} {
			tests[declared+", "+name] = func(t *testing.T, k kind, ns string) { test(t, k, ns, replicas) }
		}
	}
	onOneReplica(t, tests)
}

// renameWhileAvailable renames once, and back when that has ended.
func renameWhileAvailable(t *testing.T, k kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	k.makeThree(t, ns, replicas)
	first := deployment(t, ns, "one")

	k.rename(t, ns, "two")
	k.waitReady(t, ns, "a", 3)
	k.wantOnly(t, ns, "a", "two")
	served.wantNeverFewer(t, ns, "two", 3)

	// And back, to a new Deployment of the name.
	k.rename(t, ns, "one")
	k.waitReady(t, ns, "a", 3)
	if k.wantOnly(t, ns, "a", "one"); deployment(t, ns, "one").UID == first.UID {
		t.Error("Deployment one is the first one still: it should have gone")
	}
	served.wantNeverFewer(t, ns, "one", 3)
}

// renameWhileNotAvailable gives an object that serves names whose Deployments cannot.
func renameWhileNotAvailable(t *testing.T, k kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	k.makeThree(t, ns, replicas)
	before := running(t, ns)
	blockPods(t, ns)

	// Whatever happens to what does not serve, what does is kept.
	k.rename(t, ns, "two")
	k.waitPending(t, ns, 3, "one", "two")
	k.rename(t, ns, "three")
	k.waitPending(t, ns, 3, "one", "three")
	k.waitIdle(t)
	k.waitPending(t, ns, 3, "one", "three")

	// Back to where it serves all the time: that is all there is again.
	k.rename(t, ns, "one")
	k.waitReady(t, ns, "a", 3)
	k.wantOnly(t, ns, "a", "one")
	served.wantNeverFewer(t, ns, "one", 3)
	if diff := cmp.Diff(before.Pods, running(t, ns).Pods); diff != "" {
		t.Errorf("the Pods that served were changed (-before +after):\n%s", diff)
	}

	// Twice in a row, and then the second can serve.
	k.rename(t, ns, "two")
	k.rename(t, ns, "three")
	k.waitPending(t, ns, 3, "one", "three")
	unblockPods(t, ns)
	k.waitReady(t, ns, "a", 3)
	k.wantOnly(t, ns, "a", "three")
	served.wantNeverFewer(t, ns, "three", 3)
}

// renameNeverAvailable renames an object that has never served: there is nothing to wait
// for.
func renameNeverAvailable(t *testing.T, k kind, ns string, replicas *int32) {
	blockPods(t, ns)
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: replicas})
	waitDeployment(t, ns, "one")
	if replicas == nil {
		kubectl(t, "-n", ns, "scale", "deployment/one", "--replicas=3")
	}
	k.waitPending(t, ns, 3, "one")
	for _, name := range []string{"two", "three", "one"} {
		k.rename(t, ns, name)
		k.waitPending(t, ns, 3, name)
	}
	unblockPods(t, ns)
	k.waitReady(t, ns, "a", 3)
	k.wantOnly(t, ns, "a", "one")
}

// renameInQuickSuccession renames without waiting for what comes of it.
func renameInQuickSuccession(t *testing.T, k kind, ns string, replicas *int32) {
	served := recordAvailability(t, ns)
	k.makeThree(t, ns, replicas)
	names := []string{"two", "three", "one"}
	for i := range 12 {
		k.rename(t, ns, names[i%3])
		if i%4 == 3 { // so that it is not always the same that is on its way
			waitDeployment(t, ns, names[i%3])
		}
	}
	k.waitReady(t, ns, "a", 3)
	k.wantOnly(t, ns, "a", "one")
	served.wantNeverFewer(t, ns, "one", 3)
}

// renameToATakenName gives an object that serves the name of another's Deployment.
func renameToATakenName(t *testing.T, k kind, ns string) {
	k.makeThree(t, ns, nil)
	kubectl(t, "-n", ns, "create", "deployment", "taken", "--image=nginx")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/taken", "--timeout=60s")
	before := running(t, ns)
	k.rename(t, ns, "taken")
	k.waitStalled(t, ns, "a")
	k.waitIdle(t)
	k.rename(t, ns, "one")
	k.waitReady(t, ns, "a", 3)
	k.waitIdle(t)
	wantSame(t, "a rename to a name that is taken, and back", ns, before)
}

// makeThree makes object "a" with Deployment "one" and waits until that has three
// replicas: as declared, or because somebody scales it.
func (k kind) makeThree(t *testing.T, ns string, replicas *int32) {
	t.Helper()
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: replicas})
	waitDeployment(t, ns, "one")
	if replicas == nil {
		kubectl(t, "-n", ns, "scale", "deployment/one", "--replicas=3")
	}
	k.waitReady(t, ns, "a", 3)
}

func (k kind) rename(t *testing.T, ns, name string) {
	t.Helper()
	k.patch(t, ns, "a", fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, name))
}

// wantOnly waits until there is one Deployment in the namespace, and checks that it
// is the one that the object names and owns.
func (k kind) wantOnly(t *testing.T, ns, owner, name string) {
	t.Helper()
	waitDeployments(t, ns, name)
	k.wantOwned(t, ns, owner, name)
}

// waitDeployments waits until the Deployments of the namespace are those named.
func waitDeployments(t *testing.T, ns string, names ...string) {
	t.Helper()
	slices.Sort(names)
	waitUntil(t, fmt.Sprintf("the Deployments are %v", names), func(ctx context.Context) error {
		all, err := kube.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, d := range all.Items {
			got = append(got, d.Name)
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// waitPending waits until the Deployments are those named, the last of them with so
// many replicas of which none is available, and the object says that it is on its way
// to that one.
func (k kind) waitPending(t *testing.T, ns string, replicas int32, names ...string) {
	t.Helper()
	last := names[len(names)-1]
	waitDeployments(t, ns, names...)
	waitUntil(t, "all replicas of Deployment "+last+" are pending", func(ctx context.Context) error {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, last, metav1.GetOptions{})
		if err == nil && (d.Status.Replicas != replicas || d.Status.UnavailableReplicas != replicas || *d.Spec.Replicas != replicas) {
			err = fmt.Errorf("%d replicas wanted, status %+v", *d.Spec.Replicas, d.Status)
		}
		return err
	})
	k.waitMessage(t, ns, "a", "Reconciling", "Progressing", fmt.Sprintf(`Deployment %q has 0 of %d replicas available`, last, replicas))
}

// blockPods has all Pods that are made from now on ask for more than any Node has.
func blockPods(t *testing.T, ns string) {
	t.Helper()
	_, err := kube.CoreV1().LimitRanges(ns).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	setDefaultCPU(t, ns, "1000")
}

// unblockPods has Pods ask for next to nothing, those too that do not run yet. The
// LimitRange is kept: the API server may remember one that is gone for a while.
func unblockPods(t *testing.T, ns string) {
	t.Helper()
	setDefaultCPU(t, ns, "1m")
	kubectl(t, "-n", ns, "delete", "pods", "--field-selector=status.phase=Pending")
}

// setDefaultCPU sets what Pods ask for that do not say, and waits until the API
// server goes by it.
func setDefaultCPU(t *testing.T, ns, cpu string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":%q}}]}}`, cpu)
	if _, err := kube.CoreV1().LimitRanges(ns).Patch(t.Context(), "cpu", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	waitUntil(t, "the LimitRange is heeded", func(ctx context.Context) error {
		pod, err := kube.CoreV1().Pods(ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if requests := pod.Spec.Containers[0].Resources.Requests; !requests.Cpu().Equal(resource.MustParse(cpu)) {
			return fmt.Errorf("a Pod requests %v", requests)
		}
		return nil
	})
}
