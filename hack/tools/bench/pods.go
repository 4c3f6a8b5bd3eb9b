// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// podsNamespace has the Foos with Pods, shared by all trials of a round.
const podsNamespace = "pods"

const (
	podsPerFoo = 100
	podNodes   = 500 // that the Pods run on
)

// preparePods creates Foos with this many Pods in total, and the objects in between, as
// kube-controller-manager would. It then runs the daemon until it has processed all of them.
func preparePods(ctx context.Context, h *harness, pods int) error {
	if pods < podsPerFoo {
		return fmt.Errorf("invalid -n %d: must be at least %d, the number of Pods per Foo", pods, podsPerFoo)
	}
	foos := foosOf(pods)
	if err := h.kubectl(ctx, []string{"create", "namespace", podsNamespace}); err != nil {
		return err
	}
	if err := inParallel(ctx, foos, func(i int) error { return h.createPodsOf(ctx, fooName(i)) }); err != nil {
		return err
	}
	t := &trial{harness: h, candidate: allControllers(), n: pods}
	return errors.Join(t.startOnPods(ctx), t.stop())
}

func foosOf(pods int) int { return pods / podsPerFoo }

// createPodsOf creates a Foo with its Deployment, ReplicaSet and Pods. Padding makes the Pods
// as large as with a kubelet's status. The daemon does not cache it.
func (h *harness) createPodsOf(ctx context.Context, name string) error {
	labels := map[string]string{"app": "nginx", "controller": name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	owned := func(name string, owner metav1.Object, kind schema.GroupVersionKind) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}}
	}
	foo, err := h.sample.SamplecontrollerV1alpha1().Foos(podsNamespace).Create(ctx, newFoo(name, podsPerFoo),
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	deployment, err := h.kube.AppsV1().Deployments(podsNamespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: owned(name, foo, samplev1alpha1.SchemeGroupVersion.WithKind("Foo")),
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template, Replicas: ptr.To[int32](podsPerFoo)},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	replicaSet, err := h.kube.AppsV1().ReplicaSets(podsNamespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: owned(name, deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	for i := 0; i < podsPerFoo && err == nil; i++ {
		pod := &corev1.Pod{ObjectMeta: owned(fmt.Sprintf("%s-%05d", name, i), replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
			Spec: template.Spec}
		pod.Annotations = map[string]string{"example.com/padding": strings.Repeat("x", 2000)}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", i%podNodes)
		_, err = h.kube.CoreV1().Pods(podsNamespace).Create(ctx, pod, metav1.CreateOptions{})
	}
	return err
}

// startOnPods starts a daemon and returns when it has cached all Pods and is idle.
func (t *trial) startOnPods(ctx context.Context) error {
	if err := t.start(ctx); err != nil {
		return err
	}
	n := foosOf(t.n) * podsPerFoo
	line := fmt.Sprintf("sample_controller_manager_informer_objects{resource=\"pods\"} %d\n", n)
	err := t.await(ctx, fmt.Sprintf("%d Pods are cached", n), func(ctx context.Context) error {
		page, err := t.process.page(ctx, "/metrics")
		if err == nil && !strings.Contains(string(page), line) {
			err = errors.New("not yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	const while, little = 5 * time.Second, 0.1
	return t.await(ctx, "the daemon is idle", func(ctx context.Context) error {
		before, err := t.process.usage()
		if err != nil {
			return err
		}
		if err := sleep(ctx, while); err != nil {
			return err
		}
		after, err := t.process.usage()
		if took := after.cpu - before.cpu; err == nil && took > little {
			err = fmt.Errorf("it used %.2f s of CPU in %v", took, while)
		}
		return err
	})
}

// measureStart measures the resource usage of a daemon that starts with all Pods.
func measureStart(ctx context.Context, t *trial) (result, error) {
	return t.measure(ctx, func(time.Time) ([]value, error) {
		if err := t.startOnPods(ctx); err != nil {
			return nil, err
		}
		u, err := t.process.usage()
		return []value{{"resident memory, MiB", mebibytes(u.resident)}, {"received, MiB", mebibytes(u.received)}}, errors.Join(err, t.profile(ctx)())
	})
}
