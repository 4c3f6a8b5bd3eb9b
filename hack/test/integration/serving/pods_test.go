// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// controlledBy returns a reference to the object as the controller.
func controlledBy(object metav1.Object) *metav1.OwnerReference {
	version, name := appsv1.SchemeGroupVersion, "ReplicaSet"
	if _, ok := object.(*appsv1.Deployment); ok {
		name = "Deployment"
	}
	return metav1.NewControllerRef(object, version.WithKind(name))
}

func createReplicaSet(t *testing.T, ns, name string, labels map[string]string,
	owner *metav1.OwnerReference) *appsv1.ReplicaSet {
	t.Helper()
	rs, err := framework.Kube().AppsV1().ReplicaSets(ns).Create(t.Context(), &appsv1.ReplicaSet{
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
func createPod(t *testing.T, ns, name, node string, labels map[string]string,
	owner *metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod := template(labels)
	pod.Spec.NodeName = node
	created, err := framework.Kube().CoreV1().Pods(ns).Create(t.Context(),
		&corev1.Pod{ObjectMeta: owned(name, labels, owner), Spec: pod.Spec}, metav1.CreateOptions{})
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
	pod, err := framework.Kube().CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
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

// labels are the labels of the Pods of an object.
func labels(k framework.Kind, name string) map[string]string {
	return map[string]string{"app": k.App, "controller": name}
}

// createServed creates an object with the Deployment of its controller and a ReplicaSet of
// the same name, but no Pods.
func createServed(t *testing.T, k framework.Kind, ns, name string) *appsv1.ReplicaSet {
	t.Helper()
	k.Create(t, ns, name, 1)
	k.WaitReplicas(t, ns, name, 1)
	return createReplicaSet(t, ns, name, labels(k, name), controlledBy(framework.Deployment(t, ns, name)))
}
