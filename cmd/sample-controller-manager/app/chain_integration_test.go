// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// TestPodsAreCountedThroughOwnerChain creates Pods that differ only in their chain of
// controller owner references: all have the labels of the object's Pods. Each is on its own
// node, which identifies it in the status.
func TestPodsAreCountedThroughOwnerChain(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns, other := newNamespace(t), newNamespace(t)
		startDaemon(t, "--status-aggregation-interval=100ms")
		labels := k.labels("a")
		older := k.createServed(t, ns, "a")
		d := getDeployment(t, ns, "a")
		createPod(t, ns, "older", "older", labels, controlledBy(older))
		k.waitNodes(t, ns, "a", "older")

		// None of these belongs to the object.
		namesake := kinds[0]
		if k.Kind == namesake.Kind {
			namesake = kinds[1]
		}
		namesakes := namesake.New("a", 1)
		namesakes.Spec.DeploymentName = "b"
		namesake.Store(t, ns, namesakes)
		namesake.waitReplicas(t, ns, "b", 1)
		stale := d.DeepCopy()
		stale.UID = "00000000-0000-0000-0000-000000000000"
		foreign := createDeployment(t, ns, "foreign", labels, nil)
		onlyOwned := controlledBy(d)
		onlyOwned.Controller = nil
		elsewhere := createReplicaSet(t, other, "elsewhere", labels, controlledBy(d))
		strangers := map[string]*metav1.OwnerReference{
			"nobodys":                   nil,
			"of-a-lone-replicaset":      controlledBy(createReplicaSet(t, ns, "lone", labels, nil)),
			"of-a-foreign-deployment":   controlledBy(createReplicaSet(t, ns, "foreign", labels, controlledBy(foreign))),
			"of-a-namesake":             controlledBy(createReplicaSet(t, ns, "b", labels, controlledBy(getDeployment(t, ns, "b")))),
			"of-a-deployment-before":    controlledBy(createReplicaSet(t, ns, "before", labels, controlledBy(stale))),
			"of-a-replicaset-not-ruled": controlledBy(createReplicaSet(t, ns, "not-ruled", labels, onlyOwned)),
			"of-the-deployment-itself":  controlledBy(d),
			"of-the-object-itself":      k.controlledBy(k.MustGet(t, ns, "a")),
			"of-another-namespace":      controlledBy(elsewhere),
		}
		for name, owner := range strangers {
			createPod(t, ns, name, name, labels, owner)
		}
		withoutControl := controlledBy(older)
		withoutControl.Controller = nil
		createPod(t, ns, "not-ruled", "not-ruled", labels, withoutControl)
		replicaSetBefore := older.DeepCopy()
		replicaSetBefore.UID = stale.UID
		createPod(t, ns, "of-a-replicaset-before", "of-a-replicaset-before", labels, controlledBy(replicaSetBefore))
		// This UID is forged: nobody can know that it is from another namespace.
		createPod(t, other, "forged", "forged", labels, controlledBy(older))
		createPod(t, other, "elsewhere", "elsewhere", labels, controlledBy(elsewhere))

		// Once this Pod is counted, the caches have everything created before.
		newer := createReplicaSet(t, ns, "newer", labels, controlledBy(d))
		createPod(t, ns, "newer", "newer", labels, controlledBy(newer))
		summary := k.waitNodes(t, ns, "a", "newer", "older")
		want := workloadv1alpha1.PodSummary{
			ObservedGeneration: 1, Summary: "2/2 ready on newer, older", Total: 2, Running: 2, Ready: 2,
			Nodes:    []workloadv1alpha1.NodeSummary{{Name: "newer", Pods: 1, Ready: 1}, {Name: "older", Pods: 1, Ready: 1}},
			Problems: []workloadv1alpha1.PodProblem{},
		}
		if diff := cmp.Diff(&want, summary); diff != "" {
			t.Errorf("status.pods (-want +got):\n%s", diff)
		}
		namesake.waitNodes(t, ns, "a", "of-a-namesake")

		// Links may break and be restored while the Pods do not change.
		setOwner(t, older, nil)
		k.waitNodes(t, ns, "a", "newer")
		setOwner(t, older, controlledBy(d))
		k.waitNodes(t, ns, "a", "newer", "older")
		deletePod(t, ns, "newer")
		k.waitNodes(t, ns, "a", "older")
		deletePod(t, ns, "older")
		k.waitPods(t, ns, "a", "none")
	})
}

// setOwner sets the only owner reference of a ReplicaSet, or removes it.
func setOwner(t *testing.T, rs *appsv1.ReplicaSet, owner *metav1.OwnerReference) {
	t.Helper()
	rs, err := shared.Kube().AppsV1().ReplicaSets(rs.Namespace).Get(t.Context(), rs.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rs.OwnerReferences = owned(rs.Name, nil, owner).OwnerReferences
	if _, err := shared.Kube().AppsV1().ReplicaSets(rs.Namespace).Update(t.Context(), rs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitNodes waits until the status of an object lists exactly these nodes, with one Pod
// each.
func (k kind) waitNodes(t *testing.T, ns, name string, nodes ...string) *workloadv1alpha1.PodSummary {
	t.Helper()
	return k.waitSummary(t, ns, name, fmt.Sprintf("nodes %q", nodes), func(pods *workloadv1alpha1.PodSummary) error {
		var got []string
		for _, node := range pods.Nodes {
			got = append(got, node.Name)
		}
		if !slices.Equal(got, nodes) || int(pods.Total) != len(nodes) || int(pods.Ready) != len(nodes) {
			return fmt.Errorf("got %+v", *pods)
		}
		return nil
	})
}
