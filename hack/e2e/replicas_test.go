// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
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

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestReplicasAndImage is about who owns the replicas and the image of a Deployment.
func TestReplicasAndImage(t *testing.T) {
	startAutoscaler(t)
	onOneReplica(t, map[string]func(t *testing.T, k kind, ns string){
		"replicas absent":                              replicasAbsent,
		"replicas removed":                             replicasRemoved,
		"replicas by kubectl scale":                    replicasByScale,
		"replicas by an autoscaler on the object":      autoscaled,
		"replicas by an autoscaler on the Deployment":  autoscaledDeployment,
		"replicas declared, and by an autoscaler, too": contestedReplicas,
		"image absent, declared and removed":           image,
	})
}

func replicasAbsent(t *testing.T, k kind, ns string) {
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	k.waitReady(t, ns, "a", 1)
	for _, replicas := range []int{3, 0, 2} {
		kubectl(t, "-n", ns, "scale", "deployment/a", fmt.Sprintf("--replicas=%d", replicas))
		k.waitReady(t, ns, "a", replicas)
		k.wantPods(t, ns, "a", replicas)
	}
	k.patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`) // a write of ours
	k.waitReady(t, ns, "a", 2)
	k.wantCorrections(t, ns, 1)
}

func replicasRemoved(t *testing.T, k kind, ns string) {
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](3)})
	k.waitReady(t, ns, "a", 3)
	k.patch(t, ns, "a", `{"spec":{"replicas":null}}`)
	k.waitReady(t, ns, "a", 3)
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=4")
	k.waitReady(t, ns, "a", 4)
	k.wantCorrections(t, ns, 0)

	k.patch(t, ns, "a", `{"spec":{"replicas":1}}`)
	k.waitReady(t, ns, "a", 1)
	k.patch(t, ns, "a", `{"spec":{"replicas":null,"image":"nginx:1.29"}}`)
	k.waitReady(t, ns, "a", 1)
	k.wantPods(t, ns, "a", 1)
	k.wantCorrections(t, ns, 2)
}

func replicasByScale(t *testing.T, k kind, ns string) {
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	k.waitReady(t, ns, "a", 1)
	for _, replicas := range []int{2, 0, 3} { // the first declares them
		kubectl(t, "-n", ns, "scale", k.singular+"/a", fmt.Sprintf("--replicas=%d", replicas))
		k.waitReady(t, ns, "a", replicas)
		k.wantPods(t, ns, "a", replicas)
	}
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=5")
	k.waitCorrections(t, ns, 4) // three wishes, one correction
	k.waitReady(t, ns, "a", 3)
	kubectl(t, "-n", ns, "scale", k.singular+"/a", "--current-replicas=3", "--replicas=1")
	k.waitReady(t, ns, "a", 1)
}

func autoscaled(t *testing.T, k kind, ns string) {
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	k.waitReady(t, ns, "a", 1)
	autoscale(t, ns, "a", k.GroupVersionKind, "a", 3, 5)
	k.waitReady(t, ns, "a", 3)
	bound(t, ns, "a", 1, 2)
	k.waitReady(t, ns, "a", 2)
	k.wantPods(t, ns, "a", 2)
	waitContent(t, ns, "a", 2)
	k.wantCorrections(t, ns, 2)
}

func autoscaledDeployment(t *testing.T, k kind, ns string) {
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	k.waitReady(t, ns, "a", 1)
	autoscale(t, ns, "a", deploymentKind, "a", 3, 5)
	k.waitReady(t, ns, "a", 3)
	bound(t, ns, "a", 1, 2)
	k.waitReady(t, ns, "a", 2)
	k.patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`) // a write of ours
	k.waitReady(t, ns, "a", 2)
	k.wantPods(t, ns, "a", 2)
	k.wantCorrections(t, ns, 1)
}

// contestedReplicas has the object want two replicas and an autoscaler four.
func contestedReplicas(t *testing.T, k kind, ns string) {
	const quick, period = 5, 10 * time.Second
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	k.waitReady(t, ns, "a", 2)
	autoscale(t, ns, "a", deploymentKind, "a", 4, 6)
	message := fmt.Sprintf(`spec.replicas of Deployment "a" is also set by field manager "kube-controller-manager": leave spec.replicas of %s "a" out, or stop the other writer`, k.Kind)
	k.waitMessage(t, ns, "a", "Reconciling", "ReplicasContested", message)
	if corrections := k.corrections(t, ns); len(corrections) != quick {
		t.Errorf("%d corrections when it first says that its replicas are contested, want %d", len(corrections), quick)
	}
	k.waitCorrections(t, ns, quick+2)
	k.waitMessage(t, ns, "a", "Reconciling", "ReplicasContested", message)

	kubectl(t, "-n", ns, "delete", "hpa", "a")
	k.waitReady(t, ns, "a", 2)
	k.wantPods(t, ns, "a", 2)
	corrections := k.corrections(t, ns)
	for i := 1; i < len(corrections); i++ {
		gap := corrections[i].RequestReceivedTimestamp.Sub(corrections[i-1].RequestReceivedTimestamp.Time)
		t.Logf("correction %d came %v after the one before", i+1, gap)
		if slow := gap >= period; slow != (i >= quick) {
			t.Errorf("correction %d came %v after the one before, want %d within %v of each other and any after that as far apart at least", i+1, gap, quick, period)
		}
	}

	// What was contested is forgotten.
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=5")
	k.waitCorrections(t, ns, len(corrections)+1)
	k.waitReady(t, ns, "a", 2)
}

func image(t *testing.T, k kind, ns string) {
	// want waits until the object is ready with this image in the Deployment.
	want := func(image string) {
		t.Helper()
		k.waitWritten(t, ns, "a", 1, image)
	}
	set := func(image string) {
		t.Helper()
		kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx="+image)
	}
	k.declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	want("nginx:latest")
	set("nginx:1.28")
	want("nginx:1.28")
	k.wantCorrections(t, ns, 0)

	k.patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
	want("nginx:1.29")
	set("nginx:1.28")
	k.waitCorrections(t, ns, 2)
	want("nginx:1.29")

	k.patch(t, ns, "a", `{"spec":{"image":null}}`)
	want("nginx:1.29")
	set("nginx:1.30")
	want("nginx:1.30")
	k.wantCorrections(t, ns, 2)
}

// startAutoscaler starts a second autoscaler beside the cluster's own. That one
// looks four times a minute, which is too slow for the tests.
func startAutoscaler(t *testing.T) {
	t.Helper()
	const name = "kube-controller-manager"
	paths, err := cluster.Binaries(t.Context(), os.Stderr, name)
	if err != nil {
		t.Fatal(err)
	}
	startProgram(t, paths[name], "--kubeconfig="+testCluster.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=horizontal-pod-autoscaler-controller", "--horizontal-pod-autoscaler-sync-period=1s")
}

// deploymentKind is what an autoscaler scales that passes us over.
var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// autoscale makes an autoscaler for the named object of a kind. It has no metrics to
// go by, only its bounds.
func autoscale(t *testing.T, ns, autoscaler string, target schema.GroupVersionKind, name string, least, most int32) {
	t.Helper()
	_, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: autoscaler},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: target.GroupVersion().String(), Kind: target.Kind, Name: name},
			MinReplicas:    &least,
			MaxReplicas:    most,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// bound gives an autoscaler other bounds.
func bound(t *testing.T, ns, autoscaler string, least, most int32) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"minReplicas":%d,"maxReplicas":%d}}`, least, most)
	if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Patch(t.Context(), autoscaler, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitContent waits until an autoscaler sees and wants so many replicas, and has
// nothing to complain of but that it has no metrics.
func waitContent(t *testing.T, ns, autoscaler string, replicas int32) {
	t.Helper()
	waitUntil(t, "autoscaler "+autoscaler+" is content", func(ctx context.Context) error {
		hpa, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(ctx, autoscaler, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Status == "True" && hpa.Status.CurrentReplicas == replicas && hpa.Status.DesiredReplicas == replicas {
				return nil
			}
		}
		return fmt.Errorf("status %+v", hpa.Status)
	})
}

// corrections returns the changes of Deployments that the controller of the kind has made
// in a namespace, without those that were refused.
func (k kind) corrections(t *testing.T, ns string) []auditv1.Event {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent(k.controller), cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return slices.Contains([]string{"update deployments/scale", "patch deployments"}, cluster.Call(event)) && event.ResponseStatus.Code == 200
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func (k kind) wantCorrections(t *testing.T, ns string, want int) {
	t.Helper()
	if got := len(k.corrections(t, ns)); got != want {
		t.Errorf("%s has changed Deployments %d times, want %d", k.controller, got, want)
	}
}

// waitCorrections waits until the controller has changed Deployments so many times.
func (k kind) waitCorrections(t *testing.T, ns string, want int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%s has changed Deployments %d times", k.controller, want), func(context.Context) error {
		if got := len(k.corrections(t, ns)); got < want {
			return fmt.Errorf("it has %d times", got)
		}
		return nil
	})
}
