// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestKubeSystemGetsOnlyStatuses checks that the daemon writes nothing in kube-system except the
// status that says so.
func TestKubeSystemGetsOnlyStatuses(t *testing.T) {
	const ns = metav1.NamespaceSystem
	framework.ExpectDenials(t, byCage)
	waitForCage(t)
	client := clientOf(t, framework.NewToken(t, framework.DaemonName, framework.DaemonName, nil))
	th := &thief{deployments: client.AppsV1().Deployments(ns)}
	owner := &metav1.ObjectMeta{Name: "a", UID: "a"}
	d := newDeployment("new", *metav1.NewControllerRef(owner, framework.Foos.GroupVersionKind))
	th.wantRefused(t, "creating a Deployment", th.create(t, d))
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "forged"},
		InvolvedObject: corev1.ObjectReference{Namespace: ns},
	}
	_, err := client.CoreV1().Events(ns).Create(t.Context(), event, metav1.CreateOptions{DryRun: dryRun})
	th.wantRefused(t, "creating an Event", err)

	framework.FreeLease(t)
	r := framework.StartReplica(t, framework.OneWorker...).Ready()
	for i, k := range framework.Kinds {
		const name = "in-kube-system"
		k.Create(t, ns, name, 1)
		t.Cleanup(func() {
			if err := k.In(ns).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		k.WaitSays(t, ns, name, "Stalled", "WriteDenied", "create the object in another namespace")

		// The Event about it is refused. Further syncs neither repeat nor retry it.
		clustertest.WaitUntil(t, "the Event is sent", func(context.Context) error {
			if sent := eventsSent(t); sent != i+1 {
				return fmt.Errorf("%d Events are sent", sent)
			}
			return nil
		})
		for n := range 5 {
			if err := k.Touch(t.Context(), ns, name, fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
			k.WaitIdle(t)
		}
		if sent := eventsSent(t); sent != i+1 {
			t.Errorf("%d Events were sent, want one for each object", sent)
		}
		r.WaitState(k.Controller, "Running")
	}
	r.WaitState(framework.Aggregator, "Running")
}

// eventsSent returns how many Events the daemon has sent to kube-system.
func eventsSent(t *testing.T) (sent int) {
	t.Helper()
	for _, event := range framework.DaemonEvents(t, metav1.NamespaceSystem) {
		if event.ObjectRef.Resource == "events" {
			sent++
		}
	}
	return sent
}
