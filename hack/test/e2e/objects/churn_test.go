// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestStatusesAfterChurn deletes random Pods of 50 Foos and 50 Icecreams, drains Nodes and
// scales. In the end, each status is correct and each placement has been logged once.
func TestStatusesAfterChurn(t *testing.T) {
	framework.Long(t)
	const count = 50
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	r := framework.StartReplica(t, "-v=0").Ready() // the default verbosity
	for i := range count {
		for _, k := range framework.Kinds {
			name, replicas := fmt.Sprintf("x-%d", i), int32(1+i%3)
			k.Declare(t, ns, name, samplev1alpha1.FooSpec{DeploymentName: name + "-" + k.Singular, Replicas: &replicas})
		}
	}
	waitStatuses(t, ns, count)
	churn(t, ns, count)
	waitStatuses(t, ns, count)
	wantLines(t, []*framework.Replica{r}, ns, 1)
	r.Stop()
}

// churn disturbs the objects for a while, in three ways at once.
func churn(t *testing.T, ns string, count int) {
	t.Helper()
	var disturbing sync.WaitGroup
	disturb := func(times int, do func(i int, random *rand.Rand) error) {
		random := rand.New(rand.NewPCG(uint64(times), 1))
		disturbing.Go(func() {
			for i := range times {
				if err := do(i, random); err != nil && t.Context().Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// does not wait for an effect
	pace := func(random *rand.Rand) { time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) }
	disturb(150, func(_ int, random *rand.Rand) error {
		defer pace(random)
		name, patch := fmt.Sprintf("x-%d", random.IntN(count)), fmt.Sprintf(`{"spec":{"replicas":%d}}`, random.IntN(5))
		return errors.Join(framework.Foos.TryPatch(t.Context(), ns, name, patch),
			framework.Icecreams.TryPatch(t.Context(), ns, name, patch))
	})
	disturb(150, func(_ int, random *rand.Rand) error {
		defer pace(random)
		list, err := framework.Kube().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		err = framework.Kube().CoreV1().Pods(ns).Delete(t.Context(), list.Items[random.IntN(len(list.Items))].Name,
			metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	disturb(3, func(i int, _ *rand.Rand) error {
		node := fmt.Sprintf("node-%d", i+1)
		out, err := framework.Cluster().Kubectl(t.Context(), "drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10m")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		_, err = framework.Cluster().Kubectl(t.Context(), "uncordon", node)
		return err
	})
	disturbing.Wait()
}

// waitStatuses waits until there are count objects of each kind and their statuses match an
// independent count of the Pods.
func waitStatuses(t *testing.T, ns string, count int) {
	t.Helper()
	clustertest.WaitUntil(t, "every status is correct", func(ctx context.Context) error {
		byOwner, err := podsByOwner(ctx, ns)
		if err != nil {
			return err
		}
		for _, k := range framework.Kinds {
			list, err := k.In(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			if len(list.Items) != count {
				return fmt.Errorf("found %d %ss", len(list.Items), k.Kind)
			}
			for i := range list.Items {
				if err := compareStatus(k, &list.Items[i], byOwner[list.Items[i].GetUID()]); err != nil {
					return fmt.Errorf("%s %s: %w", k.Kind, list.Items[i].GetName(), err)
				}
			}
		}
		return nil
	})
}

func compareStatus(k framework.Kind, item *unstructured.Unstructured, pods []corev1.Pod) error {
	object, err := k.Read(item)
	if err != nil {
		return err
	}
	s, wanted := object.Status, *object.Spec.Replicas
	if s.AvailableReplicas != wanted || int(wanted) != len(pods) || s.Pods == nil {
		return fmt.Errorf("%d replicas wanted, %d available, %d Pods, status.pods is %+v", wanted, s.AvailableReplicas, len(pods), s.Pods)
	}
	ready, nodes, placed := int32(0), map[string]int32{}, map[string]string{}
	for _, pod := range pods {
		nodes[pod.Spec.NodeName]++
		placed[string(pod.UID)] = pod.Spec.NodeName
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	for _, node := range s.Pods.Nodes {
		nodes[node.Name] -= node.Pods
		if nodes[node.Name] == 0 {
			delete(nodes, node.Name)
		}
	}
	if int(s.Pods.Total) != len(pods) || s.Pods.Ready != ready || len(nodes) > 0 {
		return fmt.Errorf("%d of %d Pods are ready, status.pods is %+v; Nodes that differ: %v", ready, len(pods), s.Pods, nodes)
	}
	if k != framework.Icecreams {
		return nil
	}
	placements, _, err := unstructured.NestedSlice(item.Object, "status", "placements")
	if err != nil {
		return err
	}
	recorded := map[string]string{}
	for _, p := range placements {
		recorded[p.(map[string]any)["podUID"].(string)] = p.(map[string]any)["node"].(string)
	}
	if diff := cmp.Diff(placed, recorded); diff != "" {
		return fmt.Errorf("placements (-want +got):\n%s", diff)
	}
	return nil
}

// podsByOwner returns the Pods of a namespace by the UID of the Foo or Icecream.
func podsByOwner(ctx context.Context, ns string) (map[types.UID][]corev1.Pod, error) {
	deployments, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	replicaSets, err := framework.Kube().AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := framework.Kube().CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	owner := map[types.UID]types.UID{}
	for i := range deployments.Items {
		owner[deployments.Items[i].UID] = controllerUID(&deployments.Items[i])
	}
	for i := range replicaSets.Items {
		owner[replicaSets.Items[i].UID] = controllerUID(&replicaSets.Items[i])
	}
	byOwner := map[types.UID][]corev1.Pod{}
	for _, pod := range pods.Items {
		uid := owner[owner[controllerUID(&pod)]]
		byOwner[uid] = append(byOwner[uid], pod)
	}
	return byOwner, nil
}

func controllerUID(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}
