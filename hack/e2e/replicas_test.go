// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestReplicasAndImage is about who owns the replicas and the image of a Foo's
// Deployment.
func TestReplicasAndImage(t *testing.T) {
	startAutoscaler(t)
	onOneReplica(t, map[string]func(t *testing.T, ns string){
		"replicas absent":                              replicasAbsent,
		"replicas removed":                             replicasRemoved,
		"replicas by kubectl scale foo":                replicasByScale,
		"replicas by an autoscaler on the Foo":         autoscaledFoo,
		"replicas by an autoscaler on the Deployment":  autoscaledDeployment,
		"replicas declared, and by an autoscaler, too": contestedReplicas,
		"image absent, declared and removed":           image,
	})
}

func replicasAbsent(t *testing.T, ns string) {
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	waitReady(t, ns, "a", 1)
	for _, replicas := range []int{3, 0, 2} {
		kubectl(t, "-n", ns, "scale", "deployment/a", fmt.Sprintf("--replicas=%d", replicas))
		waitReady(t, ns, "a", replicas)
		wantPods(t, ns, "a", replicas)
	}
	patchFoo(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`) // a write of ours
	waitReady(t, ns, "a", 2)
	wantPatches(t, ns, 1)
}

func replicasRemoved(t *testing.T, ns string) {
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](3)})
	waitReady(t, ns, "a", 3)
	patchFoo(t, ns, "a", `{"spec":{"replicas":null}}`)
	waitReady(t, ns, "a", 3)
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=4")
	waitReady(t, ns, "a", 4)
	wantPatches(t, ns, 0)

	patchFoo(t, ns, "a", `{"spec":{"replicas":1}}`)
	waitReady(t, ns, "a", 1)
	patchFoo(t, ns, "a", `{"spec":{"replicas":null,"image":"nginx:1.29"}}`)
	waitReady(t, ns, "a", 1)
	wantPods(t, ns, "a", 1)
	wantPatches(t, ns, 2)
}

func replicasByScale(t *testing.T, ns string) {
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	waitReady(t, ns, "a", 1)
	for _, replicas := range []int{2, 0, 3} { // the first declares them
		kubectl(t, "-n", ns, "scale", "foo/a", fmt.Sprintf("--replicas=%d", replicas))
		waitReady(t, ns, "a", replicas)
		wantPods(t, ns, "a", replicas)
	}
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=5")
	waitPatches(t, ns, 4) // three wishes, one correction
	waitReady(t, ns, "a", 3)
	kubectl(t, "-n", ns, "scale", "foo/a", "--current-replicas=3", "--replicas=1")
	waitReady(t, ns, "a", 1)
}

func autoscaledFoo(t *testing.T, ns string) {
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	waitReady(t, ns, "a", 1)
	autoscale(t, ns, "samplecontroller.k8s.io/v1alpha1", "Foo", 3, 5)
	waitReady(t, ns, "a", 3)
	bound(t, ns, 1, 2)
	waitReady(t, ns, "a", 2)
	wantPods(t, ns, "a", 2)
	waitUntil(t, "the autoscaler is content", func(ctx context.Context) error {
		hpa, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Status == "True" && hpa.Status.CurrentReplicas == 2 && hpa.Status.DesiredReplicas == 2 {
				return nil
			}
		}
		return fmt.Errorf("status %+v", hpa.Status)
	})
	wantPatches(t, ns, 2)
}

func autoscaledDeployment(t *testing.T, ns string) {
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a"})
	waitReady(t, ns, "a", 1)
	autoscale(t, ns, "apps/v1", "Deployment", 3, 5)
	waitReady(t, ns, "a", 3)
	bound(t, ns, 1, 2)
	waitReady(t, ns, "a", 2)
	patchFoo(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`) // a write of ours
	waitReady(t, ns, "a", 2)
	wantPods(t, ns, "a", 2)
	wantPatches(t, ns, 1)
}

// contestedReplicas has the Foo want two replicas and an autoscaler four.
func contestedReplicas(t *testing.T, ns string) {
	const quick, period = 5, 10 * time.Second
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	waitReady(t, ns, "a", 2)
	autoscale(t, ns, "apps/v1", "Deployment", 4, 6)
	const message = `spec.replicas of Deployment "a" is also set by field manager "kube-controller-manager": leave spec.replicas of Foo "a" out, or stop the other writer`
	waitMessage(t, ns, "a", "Reconciling", "ReplicasContested", message)
	if corrections := patches(t, ns); len(corrections) != quick {
		t.Errorf("%d corrections when the Foo first says that its replicas are contested, want %d", len(corrections), quick)
	}
	waitPatches(t, ns, quick+2)
	waitMessage(t, ns, "a", "Reconciling", "ReplicasContested", message)

	kubectl(t, "-n", ns, "delete", "hpa", "a")
	waitReady(t, ns, "a", 2)
	wantPods(t, ns, "a", 2)
	corrections := patches(t, ns)
	for i := 1; i < len(corrections); i++ {
		gap := corrections[i].RequestReceivedTimestamp.Sub(corrections[i-1].RequestReceivedTimestamp.Time)
		t.Logf("correction %d came %v after the one before", i+1, gap)
		if slow := gap >= period; slow != (i >= quick) {
			t.Errorf("correction %d came %v after the one before, want %d within %v of each other and any after that as far apart at least", i+1, gap, quick, period)
		}
	}

	// What was contested is forgotten.
	kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=5")
	waitPatches(t, ns, len(corrections)+1)
	waitReady(t, ns, "a", 2)
}

func image(t *testing.T, ns string) {
	// want waits until the Foo is ready with this image in the Deployment.
	want := func(image string) {
		t.Helper()
		waitWritten(t, ns, "a", 1, image)
	}
	set := func(image string) {
		t.Helper()
		kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx="+image)
	}
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](1)})
	want("nginx:latest")
	set("nginx:1.28")
	want("nginx:1.28")
	wantPatches(t, ns, 0)

	patchFoo(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
	want("nginx:1.29")
	set("nginx:1.28")
	waitPatches(t, ns, 2)
	want("nginx:1.29")

	patchFoo(t, ns, "a", `{"spec":{"image":null}}`)
	want("nginx:1.29")
	set("nginx:1.30")
	want("nginx:1.30")
	wantPatches(t, ns, 2)
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

// autoscale makes an autoscaler "a" for the object "a" of the kind. It has no
// metrics to go by, only its bounds.
func autoscale(t *testing.T, ns, apiVersion, kind string, least, most int32) {
	t.Helper()
	_, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: "a"},
			MinReplicas:    &least,
			MaxReplicas:    most,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// bound gives the autoscaler other bounds.
func bound(t *testing.T, ns string, least, most int32) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"minReplicas":%d,"maxReplicas":%d}}`, least, most)
	if _, err := kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// patches returns the patches of Deployments that foo-controller has made in a
// namespace, without those that were refused.
func patches(t *testing.T, ns string) []auditv1.Event {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent("foo-controller"), cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return cluster.Call(event) == "patch deployments" && event.ResponseStatus.Code == 200
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func wantPatches(t *testing.T, ns string, want int) {
	t.Helper()
	if got := len(patches(t, ns)); got != want {
		t.Errorf("foo-controller has patched Deployments %d times, want %d", got, want)
	}
}

// waitPatches waits until foo-controller has patched Deployments so many times.
func waitPatches(t *testing.T, ns string, want int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("foo-controller has patched Deployments %d times", want), func(context.Context) error {
		if got := len(patches(t, ns)); got < want {
			return fmt.Errorf("it has %d times", got)
		}
		return nil
	})
}
