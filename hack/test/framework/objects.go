// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// WantPods waits until this many Pods of an object run on a Node.
func (k Kind) WantPods(t *testing.T, ns, name string, want int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%d Pods of %s %s run", want, k.Kind, name), func(ctx context.Context) error {
		pods, err := Kube().CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + k.App + ",controller=" + name})
		if err != nil {
			return err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == "Running" && strings.HasPrefix(pod.Spec.NodeName, "node-") && pod.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d Pods run", running, len(pods.Items))
		}
		return nil
	})
}

// WaitIdle waits until the leader has processed everything queued so far, by making it sync
// one more object. The leader must run with one worker for the kind.
func (k Kind) WaitIdle(t *testing.T) {
	t.Helper()
	ns := NewNamespace(t)
	k.Create(t, ns, "barrier", 1)
	k.WaitReady(t, ns, "barrier", 1)
}

// WaitDeployment waits until a Deployment exists.
func WaitDeployment(t *testing.T, ns, name string) {
	t.Helper()
	clustertest.WaitUntil(t, "Deployment "+name+" exists", func(ctx context.Context) error {
		_, err := Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// Snapshot is the state of a namespace, without what changes by itself.
type Snapshot struct {
	Deployments map[string]appsv1.Deployment
	ReplicaSets map[string]types.UID
	Pods        map[string]types.UID
}

// TakeSnapshot returns the current state of a namespace.
func TakeSnapshot(t *testing.T, ns string) Snapshot {
	t.Helper()
	s := Snapshot{map[string]appsv1.Deployment{}, map[string]types.UID{}, map[string]types.UID{}}
	deployments, err := Kube().AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		d.ResourceVersion, d.ManagedFields, d.Status = "", nil, appsv1.DeploymentStatus{}
		s.Deployments[d.Name] = d
	}
	replicaSets, err := Kube().AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rs := range replicaSets.Items {
		s.ReplicaSets[rs.Name] = rs.UID
	}
	pods, err := Kube().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		s.Pods[pod.Name] = pod.UID
	}
	return s
}

// Deployment returns a Deployment that must exist.
func Deployment(t *testing.T, ns, name string) *appsv1.Deployment {
	t.Helper()
	d, err := Kube().AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// EditDeployment runs a kubectl command on a Deployment. The arguments are separated by
// spaces, and DEPLOYMENT stands for deployment/<name>.
func EditDeployment(t *testing.T, ns, name, command string) {
	t.Helper()
	Kubectl(t, append([]string{"-n", ns}, strings.Fields(strings.ReplaceAll(command, "DEPLOYMENT", "deployment/"+name))...)...)
}

// ManagedBy returns the fields of an object, or of its subresource, that a field manager owns.
// It is empty if the manager owns none.
func ManagedBy(entries []metav1.ManagedFieldsEntry, manager, subresource string) string {
	for _, entry := range entries {
		if entry.Manager == manager && entry.Subresource == subresource {
			return entry.FieldsV1.GetRawString()
		}
	}
	return ""
}

// Aggregator is the controller that writes status.pods of both kinds.
const Aggregator = "status-aggregator-controller"

// WaitPodsReported waits until everything about this many Pods of an object is reported, by
// whichever controller.
func (k Kind) WaitPodsReported(t *testing.T, ns, name string, pods int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%d Pods of %s %s are reported", pods, k.Kind, name), func(ctx context.Context) error {
		object, err := k.In(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		read, err := k.Read(object)
		if err != nil {
			return err
		}
		placements, _, err := unstructured.NestedSlice(object.Object, "status", "placements")
		if err != nil {
			return err
		}
		if p := read.Status.Pods; p == nil || int(p.Total) != pods || int(p.Ready) != pods || k == Icecreams &&
			len(placements) != pods {
			return fmt.Errorf("status.pods %+v, placements %v", p, placements)
		}
		return nil
	})
}

// WantSameSnapshot compares the current state with an earlier one.
func WantSameSnapshot(t *testing.T, what, ns string, before Snapshot) {
	t.Helper()
	if diff := cmp.Diff(before, TakeSnapshot(t, ns)); diff != "" {
		t.Errorf("%s changed (-before +after):\n%s", what, diff)
	}
}
