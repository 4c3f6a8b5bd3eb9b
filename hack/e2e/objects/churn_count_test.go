// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// compareStatuses counts the Pods of every Foo and Icecream of a namespace, of which
// there are so many of each, by asking the API server for all that there is, and
// compares that with what their statuses say.
func compareStatuses(ctx context.Context, ns string, count int) error {
	byOwner, err := countPods(ctx, ns)
	if err != nil {
		return err
	}
	foos, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	icecreams, err := framework.Sample().IcecreamV1alpha1().Icecreams(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(foos.Items) != count || len(icecreams.Items) != count {
		return fmt.Errorf("there are %d Foos and %d Icecreams", len(foos.Items), len(icecreams.Items))
	}
	for _, foo := range foos.Items {
		s := foo.Status
		if err := compareStatus(byOwner[foo.UID], s.Pods, s.AvailableReplicas, *foo.Spec.Replicas); err != nil {
			return fmt.Errorf("Foo %s: %w", foo.Name, err)
		}
	}
	for _, icecream := range icecreams.Items {
		s, counted := icecream.Status, byOwner[icecream.UID]
		if err := compareStatus(counted, s.Pods, s.AvailableReplicas, *icecream.Spec.Replicas); err != nil {
			return fmt.Errorf("Icecream %s: %w", icecream.Name, err)
		}
		if diff := cmp.Diff(counted.placements, byPod(s.Placements)); diff != "" {
			return fmt.Errorf("Icecream %s: placements (-want +got):\n%s", icecream.Name, diff)
		}
	}
	return nil
}

func compareStatus(counted podCount, told *workloadv1alpha1.PodSummary, available, wanted int32) error {
	if available != wanted || int(wanted) != len(counted.placements) {
		return fmt.Errorf("%d replicas wanted, %d available, %d Pods placed", wanted, available, len(counted.placements))
	}
	if told == nil {
		return fmt.Errorf("nothing is told of its Pods")
	}
	said := *told
	said.Summary = "" // is checked where it is made
	slices.SortFunc(said.Nodes, func(a, b workloadv1alpha1.NodeSummary) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(counted.summary, said, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("pods (-want +got):\n%s", diff)
	}
	return nil
}

// podCount is what there is of one object.
type podCount struct {
	summary    workloadv1alpha1.PodSummary // nodes by name
	placements map[types.UID]icecreamv1alpha1.Placement
}

// countPods counts the Pods by the UID of the object that they belong to.
func countPods(ctx context.Context, ns string) (map[types.UID]podCount, error) {
	owner := map[types.UID]types.UID{}
	deployments, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		owner[deployments.Items[i].UID] = controllerUID(&deployments.Items[i])
	}
	replicaSets, err := framework.Kube().AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range replicaSets.Items {
		owner[replicaSets.Items[i].UID] = controllerUID(&replicaSets.Items[i])
	}
	pods, err := framework.Kube().CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	counts := map[types.UID]podCount{}
	for _, pod := range pods.Items {
		uid := owner[owner[controllerUID(&pod)]]
		c := counts[uid]
		c.add(pod)
		counts[uid] = c
	}
	return counts, nil
}

func controllerUID(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}

func (c *podCount) add(pod corev1.Pod) {
	ready := int32(0)
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			ready = 1
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue:
			if c.placements == nil {
				c.placements = map[types.UID]icecreamv1alpha1.Placement{}
			}
			c.placements[pod.UID] = icecreamv1alpha1.Placement{PodUID: pod.UID, Pod: pod.Name, Node: pod.Spec.NodeName, Time: condition.LastTransitionTime}
		}
	}
	c.summary.Total++
	c.summary.Ready += ready
	switch pod.Status.Phase {
	case corev1.PodPending:
		c.summary.Pending++
	case corev1.PodRunning:
		c.summary.Running++
	case corev1.PodSucceeded:
		c.summary.Succeeded++
	case corev1.PodFailed:
		c.summary.Failed++
	}
	for _, container := range pod.Status.ContainerStatuses {
		c.summary.Restarts += int64(container.RestartCount)
	}
	if pod.Spec.NodeName == "" {
		return
	}
	i, found := slices.BinarySearchFunc(c.summary.Nodes, pod.Spec.NodeName, func(n workloadv1alpha1.NodeSummary, name string) int { return strings.Compare(n.Name, name) })
	if !found {
		c.summary.Nodes = slices.Insert(c.summary.Nodes, i, workloadv1alpha1.NodeSummary{Name: pod.Spec.NodeName})
	}
	c.summary.Nodes[i].Pods++
	c.summary.Nodes[i].Ready += ready
}

// byPod returns the placements by the UID of their Pod, nil if there are none.
func byPod(placements []icecreamv1alpha1.Placement) (pods map[types.UID]icecreamv1alpha1.Placement) {
	for _, p := range placements {
		if pods == nil {
			pods = map[types.UID]icecreamv1alpha1.Placement{}
		}
		pods[p.PodUID] = p
	}
	return pods
}
