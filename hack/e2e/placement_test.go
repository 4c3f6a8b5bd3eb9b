// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
)

// TestPlacementsOutliveTheDaemon kills the daemon at every point on the way from a Pod
// that is placed to its record. Only between line and record may the line come twice.
func TestPlacementsOutliveTheDaemon(t *testing.T) {
	for _, point := range []struct {
		name  string
		stop  func(*placementProxy)
		lines int
	}{
		{"before the line", nil, 1},
		{"between line and record", func(p *placementProxy) { p.before.Store(true) }, 2},
		{"before it is known to be recorded", func(p *placementProxy) { p.between.Store(true) }, 1},
	} {
		t.Run(point.name, func(t *testing.T) {
			ns := newNamespace(t)
			freeLease(t)
			proxy := startPlacementProxy(t)
			logs := []*replica{startReplicaWith(t, proxy.Kubeconfig(t, daemonName, daemonName)).ready()}
			waitLeader(t, "")
			createIcecream(t, ns, "a", 0)
			waitIcecream(t, ns, "a", 0)
			if point.stop == nil {
				logs[0].kill()
			} else {
				point.stop(proxy)
			}
			scaleIcecreamPods(t, ns, "a", 1)
			if point.stop != nil {
				<-proxy.stopped
				logs[0].kill()
			}

			for range 2 { // the second finds nothing to say
				freeLease(t)
				r := startReplica(t, "--concurrent-icecream-syncs=1").ready()
				logs = append(logs, r)
				waitIcecream(t, ns, "a", 1)
				waitBarrier(t)
				r.stop()
			}
			wantLines(t, logs, ns, point.lines)
		})
	}
}

// TestRecordedPlacementsAreNotRepeated has informers resync, connections break and
// another replica take over.
func TestRecordedPlacementsAreNotRepeated(t *testing.T) {
	ns := newNamespace(t)
	freeLease(t)
	proxy := startPlacementProxy(t)
	first := startReplicaWith(t, proxy.Kubeconfig(t, daemonName, daemonName), "--min-resync-period=1s", "--concurrent-icecream-syncs=1").ready()
	holder := waitLeader(t, "")
	createIcecream(t, ns, "a", 3)
	waitIcecream(t, ns, "a", 3)
	for range 3 {
		proxy.CloseClientConnections()
		waitBarrier(t)
	}
	second := startReplica(t, "--concurrent-icecream-syncs=1").ready()
	first.stop()
	waitLeader(t, holder)
	waitBarrier(t)
	second.stop()
	wantLines(t, []*replica{first, second}, ns, 1)
}

// TestMorePlacementsThanAStatusHolds has 600 Pods live, of which the newest 500 are
// recorded, and replicas that know nothing but the record.
func TestMorePlacementsThanAStatusHolds(t *testing.T) {
	const pods, recorded = 600, 500
	ns := newNamespace(t)
	freeLease(t)
	first := startReplica(t).ready()
	createIcecream(t, ns, "a", pods)
	waitIcecream(t, ns, "a", pods)
	icecream := getIcecream(t, ns, "a")
	if s := icecream.Status; len(s.Placements) != recorded || s.PlacementsOmitted != pods-recorded {
		t.Errorf("%d placements and %d omitted, want %d and %d", len(s.Placements), s.PlacementsOmitted, recorded, pods-recorded)
	}
	first.stop()
	second := startReplica(t, "--concurrent-icecream-syncs=1").ready()
	waitBarrier(t)
	// The record is written anew, and with it what was left out.
	scaleIcecreamPods(t, ns, "a", pods-50)
	waitIcecream(t, ns, "a", pods-50)
	second.stop()
	wantLines(t, []*replica{first, second}, ns, 1)
}

func (r *replica) kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	<-r.done
}

func createIcecream(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	icecream := &icecreamv1alpha1.Icecream{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: icecreamv1alpha1.IcecreamSpec{DeploymentName: name, Replicas: &replicas}}
	if _, err := sample.IcecreamV1alpha1().Icecreams(ns).Create(t.Context(), icecream, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func getIcecream(t *testing.T, ns, name string) *icecreamv1alpha1.Icecream {
	t.Helper()
	icecream, err := sample.IcecreamV1alpha1().Icecreams(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return icecream
}

// scaleIcecreamPods changes the replicas of an Icecream and of its Deployment, as if
// the daemon had, and waits until the Pods are placed. It may not be running.
func scaleIcecreamPods(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := sample.IcecreamV1alpha1().Icecreams(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the Pods are placed", func(ctx context.Context) error {
		pods, err := placedPods(ctx, ns)
		if err == nil && len(pods) != int(replicas) {
			err = fmt.Errorf("%d are", len(pods))
		}
		return err
	})
}

func placedPods(ctx context.Context, ns string) (map[types.UID]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=icecream"})
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

// waitIcecream waits until the Icecream says that so many Pods are available, and
// each of them is recorded or counted as omitted.
func waitIcecream(t *testing.T, ns, name string, pods int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("Icecream %s has recorded %d Pods", name, pods), func(ctx context.Context) error {
		placed, err := placedPods(ctx, ns)
		if err != nil {
			return err
		}
		icecream, err := sample.IcecreamV1alpha1().Icecreams(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := icecream.Status
		if s.ObservedGeneration != icecream.Generation || int(s.AvailableReplicas) != pods || len(placed) != pods || len(s.Placements)+int(s.PlacementsOmitted) != pods {
			return fmt.Errorf("%d Pods are placed, %d available, %d recorded, %d omitted", len(placed), s.AvailableReplicas, len(s.Placements), s.PlacementsOmitted)
		}
		for _, p := range s.Placements {
			if pod := placed[p.PodUID]; pod.Name != p.Pod || pod.Spec.NodeName != p.Node {
				return fmt.Errorf("recorded is %+v", p)
			}
		}
		return nil
	})
}

// waitBarrier waits until the replica that leads, with one worker for Icecreams, has
// been through all that there was to do: it has served one more.
func waitBarrier(t *testing.T) {
	t.Helper()
	ns := newNamespace(t)
	createIcecream(t, ns, "barrier", 1)
	waitIcecream(t, ns, "barrier", 1)
}

// wantLines checks how many lines the replicas have logged of each Pod of a namespace
// that was ever recorded.
func wantLines(t *testing.T, replicas []*replica, ns string, want int) {
	t.Helper()
	lines := map[string]int{}
	for _, r := range replicas {
		for line := range strings.Lines(r.log.String()) {
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
