// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestPlacementsSurviveKills kills the daemon at each point between the placement of a Pod and
// its record in the status. Only a kill between log line and record may repeat the line.
func TestPlacementsSurviveKills(t *testing.T) {
	for _, point := range []struct {
		name           string
		held, recorded bool // the record is held, and sent after the daemon is dead
		lines          int
	}{
		{"before the line", false, false, 1},
		{"between line and record", true, false, 2},
		{"before the daemon knows that it is recorded", true, true, 1},
	} {
		t.Run(point.name, func(t *testing.T) {
			ns := framework.NewNamespace(t)
			framework.FreeLease(t)
			proxy := clustertest.StartHoldingProxy(t, framework.Cluster(), nil)
			// No other controller may change the object's version before the record.
			first := framework.StartReplicaWith(t, proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName), "--controllers=icecream").Ready()
			framework.WaitLeader(t, "")
			framework.Icecreams.Create(t, ns, "a", 0)
			waitIcecream(t, ns, "a", 0)
			if point.held {
				record := proxy.Hold(recordsPlacements)
				scaleIcecreamPods(t, ns, "a", 1)
				framework.WaitClosed(t, "the placement is about to be recorded", record.Arrived())
				first.Kill()
				if point.recorded {
					if code, err := record.Release(t.Context()); err != nil || code != http.StatusOK {
						t.Errorf("record: status %d, %v, want 200", code, err)
					}
				}
			} else {
				first.Kill()
				scaleIcecreamPods(t, ns, "a", 1)
			}

			framework.FreeLease(t)
			second := framework.StartReplica(t, "--concurrent-icecream-syncs=1").Ready()
			waitIcecream(t, ns, "a", 1)
			framework.Icecreams.WaitIdle(t)
			second.Stop()
			wantLines(t, []*framework.Replica{first, second}, ns, point.lines)
		})
	}
}

// recordsPlacements matches writes of an Icecream's status with placements.
func recordsPlacements(r *http.Request, body []byte) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") && strings.Contains(r.URL.Path, "/icecreams/") &&
		bytes.Contains(body, []byte(`"/status/placements"`))
}

// scaleIcecreamPods changes the replicas of an Icecream and of its Deployment, as the daemon
// would, and waits until the Pods are placed. The daemon need not be running.
func scaleIcecreamPods(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	framework.Icecreams.Patch(t, ns, name, string(patch))
	if _, err := framework.Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.WaitUntil(t, "the Pods are placed", func(ctx context.Context) error {
		pods, err := placedPods(ctx, ns)
		if err == nil && len(pods) != int(replicas) {
			err = fmt.Errorf("%d are placed", len(pods))
		}
		return err
	})
}

func placedPods(ctx context.Context, ns string) (map[types.UID]corev1.Pod, error) {
	list, err := framework.Kube().CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=icecream"})
	if err != nil {
		return nil, err
	}
	placed := map[types.UID]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			placed[pod.UID] = pod
		}
	}
	return placed, nil
}

// waitIcecream waits until the Icecream reports this many available Pods, and each of them is
// recorded or counted as omitted.
func waitIcecream(t *testing.T, ns, name string, pods int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("Icecream %s has recorded %d Pods", name, pods), func(ctx context.Context) error {
		placed, err := placedPods(ctx, ns)
		if err != nil {
			return err
		}
		icecream, err := framework.Sample().IcecreamV1alpha1().Icecreams(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := icecream.Status
		if s.ObservedGeneration != icecream.Generation || int(s.AvailableReplicas) != pods || len(placed) != pods ||
			len(s.Placements)+int(s.PlacementsOmitted) != pods {
			return fmt.Errorf("%d Pods are placed, %d available, %d recorded, %d omitted", len(placed), s.AvailableReplicas, len(s.Placements), s.PlacementsOmitted)
		}
		for _, p := range s.Placements {
			if pod := placed[p.PodUID]; pod.Name != p.Pod || pod.Spec.NodeName != p.Node {
				return fmt.Errorf("record %+v", p)
			}
		}
		return nil
	})
}

// wantLines checks how many lines the replicas have logged for each Pod of a namespace that
// was ever recorded.
func wantLines(t *testing.T, replicas []*framework.Replica, ns string, want int) {
	t.Helper()
	lines := map[string]int{}
	for _, r := range replicas {
		for line := range strings.Lines(r.Log.String()) {
			if _, said, ok := strings.Cut(line, `] "Pod scheduled" icecream=`); ok && strings.Contains(said, `pod="`+ns+"/") {
				lines[strings.TrimSpace(said)]++
			}
		}
	}
	if len(lines) == 0 {
		t.Error("no line was logged")
	}
	for line, n := range lines {
		if n != want {
			t.Errorf("%d lines %s, want %d", n, line, want)
		}
	}
}
