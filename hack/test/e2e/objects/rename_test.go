// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestRename changes spec.deploymentName of an object "a" whose Deployment "one" has three
// replicas, declared by the object or set by another client.
func TestRename(t *testing.T) {
	declared, absent := ptr.To[int32](3), (*int32)(nil)
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"there and back, replicas set": func(t *testing.T, k framework.Kind, ns string) {
			renameThereAndBack(t, k, ns, declared)
		},
		"there and back, replicas absent": func(t *testing.T, k framework.Kind, ns string) {
			renameThereAndBack(t, k, ns, absent)
		},
		"in quick succession": renameInQuickSuccession,
		"to a taken name":     renameToATakenName,
	})
}

// renameThereAndBack renames the Deployment to "two", back to "one", which still exists, and to
// "two" again. Then it deletes the former one, as the status advises.
func renameThereAndBack(t *testing.T, k framework.Kind, ns string, replicas *int32) {
	makeThree(t, k, ns, replicas)
	before := framework.TakeSnapshot(t, ns)
	created, lostFromOne := 3, ""
	if replicas == nil { // a new Deployment gets the default
		created, lostFromOne = 1, "3 replicas, "
	}

	rename(t, k, ns, "two")
	waitRenamed(t, k, ns, "two", created, "one", lostFromOne)
	wantEvent(t, k, ns, "a", "FormerDeploymentLeft", fmt.Sprintf("kubectl -n %s delete deployment one", ns))
	k.WaitIdle(t)
	wantKept(t, ns, before)

	both := framework.TakeSnapshot(t, ns)
	rename(t, k, ns, "one")
	waitRenamed(t, k, ns, "one", 3, "two", "")
	rename(t, k, ns, "two")
	waitRenamed(t, k, ns, "two", created, "one", lostFromOne)
	k.WaitIdle(t)
	framework.WantSameSnapshot(t, "renaming back and forth", ns, both)
	wantCorrections(t, k, ns, 0)

	followAdvice(t, k, ns, "a")
	waitMessage(t, k, ns, "a", fmt.Sprintf(`Deployment "two" has %d of %d replicas available`, created, created))
	wantOnly(t, k, ns, "a", "two")
	k.WantPods(t, ns, "a", created)
}

// renameInQuickSuccession renames repeatedly without waiting for the effect. Nothing is lost,
// and one command deletes all former Deployments.
func renameInQuickSuccession(t *testing.T, k framework.Kind, ns string) {
	makeThree(t, k, ns, ptr.To[int32](3))
	before := framework.TakeSnapshot(t, ns)
	names := []string{"two", "three", "one"}
	for i := range 12 {
		rename(t, k, ns, names[i%3])
		if i%4 == 3 { // so that the renames do not always overlap in the same way
			framework.WaitDeployment(t, ns, names[i%3])
		}
	}
	k.WaitReady(t, ns, "a", 3)
	k.WaitIdle(t)
	wantKept(t, ns, before)
	waitDeployments(t, ns, names...)
	followAdvice(t, k, ns, "a")
	waitMessage(t, k, ns, "a", `Deployment "one" has 3 of 3 replicas available`)
	wantOnly(t, k, ns, "a", "one")
	k.WantPods(t, ns, "a", 3)
	wantKept(t, ns, before)
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
	k.WantPods(t, ns, "a", 3)
}

func rename(t *testing.T, k framework.Kind, ns, name string) {
	t.Helper()
	k.Patch(t, ns, "a", fmt.Sprintf(`{"spec":{"deploymentName":%q}}`, name))
}

// waitRenamed waits until the object is Ready with its present Deployment, reports nothing of the
// former one's Pods, and says that this one still runs, and what of it is lost.
func waitRenamed(t *testing.T, k framework.Kind, ns, present string, replicas int, former, lost string) {
	t.Helper()
	k.WaitReady(t, ns, "a", replicas)
	waitMessage(t, k, ns, "a", fmt.Sprintf("Deployment %q has %d of %d replicas available; "+
		"the former Deployment %q still runs; not carried over from %q: %swhatever else the spec does not declare; "+
		"once you do not need it, run kubectl -n %s delete deployment %s",
		present, replicas, replicas, former, former, lost, ns, former))
	waitReported(t, k, ns, present, replicas)
}

// waitMessage waits until the Ready condition of the object has exactly this message.
func waitMessage(t *testing.T, k framework.Kind, ns, name, message string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("the message is %q", message), func(ctx context.Context) error {
		got, err := readyMessage(ctx, k, ns, name)
		if err == nil && got != message {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// waitReported waits until status.pods and the placements are about this many Pods, all of them
// of the Deployment.
func waitReported(t *testing.T, k framework.Kind, ns, deployment string, pods int) {
	t.Helper()
	k.WaitPodsReported(t, ns, "a", pods)
	clustertest.WaitUntil(t, "the placements are of Deployment "+deployment, func(ctx context.Context) error {
		object, err := k.In(ns).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		placements, _, err := unstructured.NestedSlice(object.Object, "status", "placements")
		for _, p := range placements {
			if pod := p.(map[string]any)["pod"].(string); !strings.HasPrefix(pod, deployment+"-") {
				err = errors.Join(err, fmt.Errorf("there is one of Pod %s", pod))
			}
		}
		return err
	})
}

// wantKept checks that what was in the namespace is still there and unchanged.
func wantKept(t *testing.T, ns string, before framework.Snapshot) {
	t.Helper()
	now := framework.TakeSnapshot(t, ns)
	keep(now.Deployments, before.Deployments)
	keep(now.ReplicaSets, before.ReplicaSets)
	keep(now.Pods, before.Pods)
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("what existed before the rename changed (-before +after):\n%s", diff)
	}
}

// keep removes what is not in the other map.
func keep[V, W any](from map[string]V, in map[string]W) {
	maps.DeleteFunc(from, func(name string, _ V) bool { _, ok := in[name]; return !ok })
}

// wantEvent waits until there is an Event about the object with this reason and text.
func wantEvent(t *testing.T, k framework.Kind, ns, name, reason, text string) {
	t.Helper()
	clustertest.WaitUntil(t, "there is an Event "+reason, func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=" + k.Kind + ",involvedObject.name=" + name + ",reason=" + reason,
		})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if strings.Contains(event.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("none contains %q: %+v", text, events.Items)
	})
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
