// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// What kube-controller-manager, kube-scheduler and kubelets would do.

// controlledBy returns a reference to the object as the controller.
func controlledBy(object metav1.Object) *metav1.OwnerReference {
	version, name := appsv1.SchemeGroupVersion, "ReplicaSet"
	if _, ok := object.(*appsv1.Deployment); ok {
		name = "Deployment"
	}
	return metav1.NewControllerRef(object, version.WithKind(name))
}

// controlledBy returns a reference to an object of the kind as the controller.
func (k kind) controlledBy(object metav1.Object) *metav1.OwnerReference {
	return metav1.NewControllerRef(object, schema.FromAPIVersionAndKind(k.apiVersion(), k.Kind))
}

// labels are the labels of the Pods of an object.
func (k kind) labels(name string) map[string]string {
	return map[string]string{"app": k.App, "controller": name}
}

// createDeployment creates a Deployment as the kind's controller does.
func createDeployment(t *testing.T, ns, name string, labels map[string]string, owner *metav1.OwnerReference) *appsv1.Deployment {
	t.Helper()
	d, err := shared.Kube().AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: owned(name, nil, owner),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: template(labels),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func createReplicaSet(t *testing.T, ns, name string, labels map[string]string, owner *metav1.OwnerReference) *appsv1.ReplicaSet {
	t.Helper()
	rs, err := shared.Kube().AppsV1().ReplicaSets(ns).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: owned(name, labels, owner),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: template(labels),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// createPod creates a running and ready Pod on a node.
func createPod(t *testing.T, ns, name, node string, labels map[string]string, owner *metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod := template(labels)
	pod.Spec.NodeName = node
	created, err := shared.Kube().CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{ObjectMeta: owned(name, labels, owner), Spec: pod.Spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return setPod(t, created, func(status *corev1.PodStatus) {
		status.Phase = corev1.PodRunning
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
}

// setPod changes the status of a Pod.
func setPod(t *testing.T, pod *corev1.Pod, set func(*corev1.PodStatus)) *corev1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	set(&pod.Status)
	pod, err := shared.Kube().CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// restarted sets the restart count of a Pod's container.
func restarted(times int32) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) {
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", Image: "nginx", RestartCount: times}}
	}
}

// deletePod deletes a Pod without a grace period, as the kubelet does once it has stopped.
func deletePod(t *testing.T, ns, name string) {
	t.Helper()
	if err := shared.Kube().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
}

func owned(name string, labels map[string]string, owner *metav1.OwnerReference) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Labels: labels}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return m
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
	}
}

// createServed creates an object with the Deployment of its controller and a ReplicaSet of
// the same name, but no Pods.
func (k kind) createServed(t *testing.T, ns, name string) *appsv1.ReplicaSet {
	t.Helper()
	k.Create(t, ns, name, 1)
	k.waitReplicas(t, ns, name, 1)
	return createReplicaSet(t, ns, name, k.labels(name), controlledBy(getDeployment(t, ns, name)))
}

// waitSummary waits until check accepts the Pod summary in the status of an object.
func (k kind) waitSummary(t *testing.T, ns, name, what string, check func(*workloadv1alpha1.PodSummary) error) *workloadv1alpha1.PodSummary {
	t.Helper()
	var pods *workloadv1alpha1.PodSummary
	clustertest.WaitUntil(t, fmt.Sprintf("the status of %s %s has %s", k.Kind, name, what), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err != nil {
			return err
		}
		if pods = object.Status.Pods; pods == nil {
			return errors.New("it has no pods")
		}
		return check(pods)
	})
	return pods
}

// waitPods waits until the Pod summary of an object has this line.
func (k kind) waitPods(t *testing.T, ns, name, summary string) *workloadv1alpha1.PodSummary {
	t.Helper()
	return k.waitSummary(t, ns, name, fmt.Sprintf("%q", summary), func(pods *workloadv1alpha1.PodSummary) error {
		if pods.Summary != summary {
			return fmt.Errorf("got %q", pods.Summary)
		}
		return nil
	})
}

// waitRestarts waits until the Pod summary of an object has this many restarts.
func (k kind) waitRestarts(t *testing.T, ns, name string, restarts int32) *workloadv1alpha1.PodSummary {
	t.Helper()
	return k.waitSummary(t, ns, name, fmt.Sprintf("%d restarts", restarts), func(pods *workloadv1alpha1.PodSummary) error {
		if pods.Restarts != int64(restarts) {
			return fmt.Errorf("got %d", pods.Restarts)
		}
		return nil
	})
}
