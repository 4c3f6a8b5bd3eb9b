// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// podState is the node and the problem of a Pod.
type podState struct {
	node, problem string // CrashLoopBackOff is more severe than Evicted
}

func (s podState) active() bool { return s.problem != "Evicted" }

// TestStatusListsKeepTheirOrder changes the order of all lists in a status repeatedly. If
// the API server returned one in another order than it was applied in, it would be applied
// forever.
func TestStatusListsKeepTheirOrder(t *testing.T) {
	all := sideBySide(t)
	startDaemon(t, "--status-aggregation-interval=50ms")
	for _, k := range all {
		rs := controlledBy(k.createServed(t, k.ns, "a"))
		states := map[string]podState{}
		set := func(i int, state podState) {
			name := fmt.Sprintf("p-%02d", i)
			if _, ok := states[name]; ok {
				deletePod(t, k.ns, name)
			}
			states[name] = state
			pod := createPod(t, k.ns, name, state.node, k.labels("a"), rs)
			setPod(t, pod, func(status *corev1.PodStatus) {
				// Placed in another order than that of their names and creation.
				at := time.Date(2026, 1, 1, 0, i*7%12, 0, 0, time.UTC)
				status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)})
				switch state.problem {
				case "Evicted":
					status.Phase, status.Reason = corev1.PodFailed, state.problem
				case "CrashLoopBackOff":
					status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", Image: "nginx", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: state.problem}}}}
				}
			})
		}
		for round := range 6 {
			for i := range 12 {
				// Half of the Pods are kept, except in the first round.
				if round == 0 || (i+round)%2 == 0 {
					set(i, podState{
						node:    fmt.Sprintf("node-%d", (i*(round+1)+i*i*round)%5),
						problem: []string{"", "CrashLoopBackOff", "Evicted", "CrashLoopBackOff"}[(i*3+round*5)%4],
					})
				}
			}
			nodes, problems := listsOf(states)
			k.waitSummary(t, k.ns, "a", fmt.Sprintf("round %d", round), func(pods *workloadv1alpha1.PodSummary) error {
				var got []string
				for _, p := range pods.Problems {
					got = append(got, p.Reason+" "+p.Pod)
				}
				var counts []string
				for _, n := range pods.Nodes {
					counts = append(counts, fmt.Sprintf("%d %s", n.Pods, n.Name))
				}
				if diff := gocmp.Diff(nodes, counts) + gocmp.Diff(problems, got); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		}
		if k.Kind == icecreams.Kind {
			active := 0
			for _, state := range states {
				if state.active() {
					active++
				}
			}
			wantPlacementsInOrder(t, k.ns, "a", active)
		}
	}

	// Everything is written: when the controllers are enqueued, they find nothing to write.
	writes := func() map[string]int {
		counts := map[string]int{}
		for _, k := range all {
			for _, by := range []string{k.Controller, aggregator} {
				counts[by+" of "+k.Resource] = callsBy(t, by, k.ns)[k.patchStatus()]
			}
		}
		return counts
	}
	var before map[string]int
	clustertest.WaitUntil(t, "the audit log has all writes", func(context.Context) error {
		first := writes()
		time.Sleep(2 * time.Second) // progress is written up to a second late, and logged after that
		before = writes()
		if diff := gocmp.Diff(first, before); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	for i := range 3 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, i)
		for _, k := range all {
			if err := k.TryPatch(t.Context(), k.ns, "a", string(patch)); err != nil {
				t.Fatal(err)
			}
			for j := range 12 {
				if _, err := shared.Kube().CoreV1().Pods(k.ns).Patch(t.Context(), fmt.Sprintf("p-%02d", j), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	time.Sleep(2 * time.Second) // no writes may follow
	if diff := gocmp.Diff(before, writes()); diff != "" {
		t.Errorf("statuses were written without a change (-before +after):\n%s", diff)
	}
	t.Logf("writes: %v", before)
}

// listsOf returns the expected lists of a status: the nodes with the most active Pods
// first, and the five most severe problems.
func listsOf(states map[string]podState) (nodes, problems []string) {
	counts := map[string]int{}
	for name, state := range states {
		if state.active() {
			counts[state.node]++
		}
		if state.problem != "" {
			problems = append(problems, state.problem+" "+name)
		}
	}
	for node, count := range counts {
		nodes = append(nodes, fmt.Sprintf("%d %s", count, node))
	}
	slices.SortFunc(nodes, func(a, b string) int { return cmp.Or(cmp.Compare(b[:1], a[:1]), cmp.Compare(a, b)) })
	slices.Sort(problems)
	return nodes, problems[:min(len(problems), 5)]
}

// wantPlacementsInOrder waits until an Icecream has this many placements, and checks their
// order.
func wantPlacementsInOrder(t *testing.T, ns, name string, count int) {
	t.Helper()
	waitPlacements(t, ns, name, count)
	icecream, err := shared.Sample().IcecreamV1alpha1().Icecreams(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(icecream.Status.Placements, func(a, b icecreamv1alpha1.Placement) int {
		return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.PodUID, b.PodUID))
	}) {
		t.Errorf("placements are not in order: %+v", icecream.Status.Placements)
	}
}
