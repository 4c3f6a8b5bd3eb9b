// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestReplicasAndImage checks who owns the replicas and the image of a Deployment.
func TestReplicasAndImage(t *testing.T) {
	shared := framework.NewNamespace(t)
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"replicas absent":  replicasAbsent,
		"replicas removed": replicasRemoved,
		"repairs":          repairs,
		"replicas set by an autoscaler of the object": autoscaled,
		"replicas declared and set by an autoscaler":  contestedReplicas,
		"same name, other kind, own autoscaler":       func(t *testing.T, k framework.Kind, _ string) { autoscaledNamesake(t, k, shared) },
		"image absent, declared and removed":          image,
	})
}

func replicasAbsent(t *testing.T, k framework.Kind, ns string) {
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	k.WaitReady(t, ns, "a", 1)
	for _, replicas := range []int{3, 0, 2} {
		framework.Kubectl(t, "-n", ns, "scale", "deployment/a", fmt.Sprintf("--replicas=%d", replicas))
		k.WaitReady(t, ns, "a", replicas)
		k.WantPods(t, ns, "a", replicas)
	}
	k.Patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`) // makes the daemon write
	k.WaitReady(t, ns, "a", 2)
	wantCorrections(t, k, ns, 1)
}

func replicasRemoved(t *testing.T, k framework.Kind, ns string) {
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](3)})
	k.WaitReady(t, ns, "a", 3)
	k.Patch(t, ns, "a", `{"spec":{"replicas":null}}`)
	k.WaitReady(t, ns, "a", 3)
	framework.Kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=4")
	k.WaitReady(t, ns, "a", 4)
	wantCorrections(t, k, ns, 0)

	k.Patch(t, ns, "a", `{"spec":{"replicas":1}}`)
	k.WaitReady(t, ns, "a", 1)
	k.Patch(t, ns, "a", `{"spec":{"replicas":null,"image":"nginx:1.29"}}`)
	k.WaitReady(t, ns, "a", 1)
	k.WantPods(t, ns, "a", 1)
	wantCorrections(t, k, ns, 2)
}

// repairs scales and deletes the Deployment by hand. The Events of the object say what was repaired.
func repairs(t *testing.T, k framework.Kind, ns string) {
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	k.WaitReady(t, ns, "a", 1)
	framework.Kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=5")
	waitEvent(t, k, ns, "a", `Corrected: Deployment "a": replicas 5 -> 1, changed by field manager "kubectl"`)
	k.WaitReady(t, ns, "a", 1)
	framework.Kubectl(t, "-n", ns, "delete", "deployment/a")
	waitEvent(t, k, ns, "a", `Recreated: Deployment "a" was deleted, and is created again`)
	k.WaitReady(t, ns, "a", 1)
}

// waitEvent waits for an Event about an object, given as its reason and message.
func waitEvent(t *testing.T, k framework.Kind, ns, name, want string) {
	t.Helper()
	clustertest.WaitUntil(t, "the Event "+want, func(ctx context.Context) error {
		list, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, event := range list.Items {
			if event.InvolvedObject.Kind == k.Kind && event.InvolvedObject.Name == name {
				got = append(got, event.Reason+": "+event.Message)
			}
		}
		if !slices.Contains(got, want) {
			return fmt.Errorf("its Events are %q", got)
		}
		return nil
	})
}

func autoscaled(t *testing.T, k framework.Kind, ns string) {
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	k.WaitReady(t, ns, "a", 1)
	autoscale(t, ns, "a", k.GroupVersionKind, "a", 3, 5)
	k.WaitReady(t, ns, "a", 3)
	bound(t, ns, "a", 1, 2)
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	waitContent(t, ns, "a", 2)
	wantCorrections(t, k, ns, 2)
}

// autoscaledNamesake scales an object "x" by an autoscaler beside an object "x" of the other
// kind. Neither autoscaler selects the other's Pods. A third one, which does, shows that an
// autoscaler would report it.
func autoscaledNamesake(t *testing.T, k framework.Kind, ns string) {
	replicas := map[framework.Kind]int32{framework.Foos: 2, framework.Icecreams: 3}[k]
	name := "x-" + k.Singular
	k.Declare(t, ns, "x", samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](1)})
	k.WaitReady(t, ns, "x", 1)
	autoscale(t, ns, name, k.GroupVersionKind, "x", replicas, replicas)
	k.WaitReady(t, ns, "x", int(replicas))
	k.WantPods(t, ns, "x", int(replicas))
	k.WaitPodsReported(t, ns, "x", int(replicas))
	waitContent(t, ns, name, replicas)
	k.Other().WaitReady(t, ns, "x", int(5-replicas))
	waitScalingActive(t, ns, name, "FailedGetResourceMetric") // it has selected the Pods, which have no metrics
	wantCorrections(t, k, ns, 1)
	if k == framework.Foos {
		autoscale(t, ns, "intruder", deploymentKind, name, 1, 2)
		waitScalingActive(t, ns, "intruder", "AmbiguousSelector")
	}
}

// waitScalingActive waits until an autoscaler's condition ScalingActive has this reason.
func waitScalingActive(t *testing.T, ns, autoscaler, reason string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("autoscaler %s reports %s", autoscaler, reason), func(ctx context.Context) error {
		hpa, err := framework.Kube().AutoscalingV2().HorizontalPodAutoscalers(ns).Get(ctx, autoscaler, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("status %+v", hpa.Status)
	})
}

// contestedReplicas makes the object want two replicas and an autoscaler four.
func contestedReplicas(t *testing.T, k framework.Kind, ns string) {
	const named, quick, period = 3, 5, 10 * time.Second
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	k.WaitReady(t, ns, "a", 2)
	autoscale(t, ns, "a", deploymentKind, "a", 4, 6)
	message := fmt.Sprintf(`spec.replicas of Deployment "a" is also set by field manager "kube-controller-manager": remove spec.replicas from %s "a", or stop the other writer`, k.Kind)
	k.WaitMessage(t, ns, "a", "Stalled", "ReplicasContested", message)
	if got := len(corrections(t, k, ns)); got < named {
		t.Errorf("%d corrections before it first reports contested replicas, want %d", got, named)
	}
	waitCorrections(t, k, ns, quick+2)
	k.WaitMessage(t, ns, "a", "Stalled", "ReplicasContested", message)
	wantWarning(t, k, ns, "a", "ReplicasContested")

	framework.Kubectl(t, "-n", ns, "delete", "hpa", "a")
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	corrections := corrections(t, k, ns)
	count := 1
	for i := 1; i < len(corrections); i++ {
		gap := corrections[i].RequestReceivedTimestamp.Sub(corrections[i-1].RequestReceivedTimestamp.Time)
		// On a busy machine, a pause of the autoscaler may end the contest: after two periods, from
		// the end of one request to the end of the next.
		if gap >= period+period/2 {
			count = 0
		}
		if count >= quick && gap < period {
			t.Errorf("correction %d came %v after the previous one, want at least %v after the first %d", i+1, gap, period, quick)
		}
		count++
	}
}

func image(t *testing.T, k framework.Kind, ns string) {
	// want waits until the object is Ready with this image in the Deployment.
	want := func(image string) {
		t.Helper()
		waitWritten(t, k, ns, "a", 1, image)
	}
	set := func(image string) {
		t.Helper()
		framework.Kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx="+image)
	}
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	want("nginx:latest")
	set("nginx:1.28")
	want("nginx:1.28")
	wantCorrections(t, k, ns, 0)

	k.Patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
	want("nginx:1.29")
	set("nginx:1.28")
	waitCorrections(t, k, ns, 2)
	want("nginx:1.29")

	k.Patch(t, ns, "a", `{"spec":{"image":null}}`)
	want("nginx:1.29")
	set("nginx:1.30")
	want("nginx:1.30")
	wantCorrections(t, k, ns, 2)
}

// deploymentKind is the kind that an autoscaler scales if it bypasses the object.
var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// autoscale creates an autoscaler for the named object of a kind. It has no metrics, only its
// bounds.
func autoscale(t *testing.T, ns, autoscaler string, target schema.GroupVersionKind, name string, least, most int32) {
	t.Helper()
	_, err := framework.Kube().AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(),
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: autoscaler},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: target.GroupVersion().String(),
					Kind: target.Kind, Name: name},
				MinReplicas: &least,
				MaxReplicas: most,
			},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// bound changes the bounds of an autoscaler.
func bound(t *testing.T, ns, autoscaler string, least, most int32) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"minReplicas":%d,"maxReplicas":%d}}`, least, most)
	if _, err := framework.Kube().AutoscalingV2().HorizontalPodAutoscalers(ns).Patch(t.Context(), autoscaler,
		types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitContent waits until an autoscaler sees and wants this many replicas, and reports no
// problem except the missing metrics.
func waitContent(t *testing.T, ns, autoscaler string, replicas int32) {
	t.Helper()
	clustertest.WaitUntil(t, "autoscaler "+autoscaler+" is content", func(ctx context.Context) error {
		hpa, err := framework.Kube().AutoscalingV2().HorizontalPodAutoscalers(ns).Get(ctx, autoscaler, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Status == "True" && hpa.Status.CurrentReplicas == replicas &&
				hpa.Status.DesiredReplicas == replicas {
				return nil
			}
		}
		return fmt.Errorf("status %+v", hpa.Status)
	})
}

// corrections returns the changes of Deployments by the kind's controller in a namespace,
// without rejected ones.
func corrections(t *testing.T, k framework.Kind, ns string) []auditv1.Event {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns),
		func(event auditv1.Event) bool {
			return cluster.Call(event) == "patch deployments" && event.ResponseStatus.Code == 200
		})
	return events
}

func wantCorrections(t *testing.T, k framework.Kind, ns string, want int) {
	t.Helper()
	if got := len(corrections(t, k, ns)); got != want {
		t.Errorf("%s has changed Deployments %d times, want %d", k.Controller, got, want)
	}
}

// waitCorrections waits until the controller has changed Deployments this many times.
func waitCorrections(t *testing.T, k framework.Kind, ns string, want int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s has changed Deployments %d times", k.Controller, want), func(context.Context) error {
		if got := len(corrections(t, k, ns)); got < want {
			return fmt.Errorf("%d times", got)
		}
		return nil
	})
}
