// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// steps make all that is cached, and what is not: first what is told by itself, and last
// what makes the daemon change what is there.
func (l *lab) steps() []step {
	others, foos, pods := *memoryOthers, *memoryFoos, *memoryPods
	icecreams := min(1000, others)
	const deployments = "deployments.apps"
	return []step{
		{"Deployment of others", others, l.each(others, l.createOther), deployments, others},
		{"Deployment of ours", others, l.each(others, l.createOrphan), deployments, 2 * others},
		{"Foo and its Deployment", foos, l.each(foos, l.createFoo), deployments, 2*others + foos},
		{"the Deployment is available", foos, l.each(foos, l.haveAvailable), deployments, 2*others + foos},
		{"Icecream and its Deployment", icecreams, l.each(icecreams, l.createIcecream), deployments, 2*others + foos + icecreams},
		{"ReplicaSet", foos, l.each(foos, l.createReplicaSet), "replicasets.apps", foos},
		{"Pod of ours", pods, l.each(pods, l.createOwnPod), "pods", pods},
		{"Pod without the label", *memoryStrange, l.each(*memoryStrange, l.createStrangePod), "pods", pods},
	}
}

// each makes objects by several clients at once.
func (l *lab) each(count int, create func(context.Context, int) error) func(context.Context) error {
	return func(ctx context.Context) error {
		errs := make([]error, count)
		workqueue.ParallelizeUntil(ctx, clients, count, func(i int) { errs[i] = create(ctx, i) })
		return errors.Join(append(errs, ctx.Err())...)
	}
}

// nodes is how many there are, on which Pods are spread as a scheduler would.
const nodes = 500

// podSpec is what fits a template too.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}}
}

func (l *lab) createOther(ctx context.Context, i int) error {
	labels := map[string]string{"app.kubernetes.io/name": "other", "app.kubernetes.io/instance": fmt.Sprint(i)}
	_, err := l.createDeployment(ctx, metav1.ObjectMeta{Name: fmt.Sprintf("other-%05d", i), Labels: labels}, labels)
	return err
}

// createOrphan makes a Deployment of a Foo that there is no more.
func (l *lab) createOrphan(ctx context.Context, i int) error {
	gone := &metav1.ObjectMeta{Name: fmt.Sprintf("gone-%05d", i), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))}
	kind := samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
	d, err := l.createDeployment(ctx, metav1.ObjectMeta{Name: gone.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gone, kind)}},
		map[string]string{"app": "nginx", "controller": gone.Name})
	if err != nil {
		return err
	}
	return l.haveReplicas(ctx, d)
}

func (l *lab) createDeployment(ctx context.Context, meta metav1.ObjectMeta, labels map[string]string) (*appsv1.Deployment, error) {
	return l.kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}, metav1.CreateOptions{})
}

func (l *lab) createFoo(ctx context.Context, i int) error {
	_, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: fooName(i)},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: fooName(i), Replicas: ptr.To(int32(*memoryPods / *memoryFoos))},
	}, metav1.CreateOptions{})
	return err
}

func (l *lab) createIcecream(ctx context.Context, i int) error {
	name := fmt.Sprintf("icecream-%04d", i)
	_, err := l.sample.IcecreamV1alpha1().Icecreams(namespace).Create(ctx, &icecreamv1alpha1.Icecream{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       icecreamv1alpha1.IcecreamSpec{DeploymentName: name, Replicas: ptr.To(int32(0))},
	}, metav1.CreateOptions{})
	return err
}

// haveAvailable has the Deployment of a Foo say that all its replicas are available, as
// kube-controller-manager would.
func (l *lab) haveAvailable(ctx context.Context, i int) error {
	d, err := l.kube.AppsV1().Deployments(namespace).Get(ctx, fooName(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	return l.haveReplicas(ctx, d)
}

func (l *lab) haveReplicas(ctx context.Context, d *appsv1.Deployment) error {
	n := ptr.Deref(d.Spec.Replicas, 1)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
				Message: fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name+"-86d589675b")},
		},
	}
	_, err := l.kube.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return err
}

// replicaSetName is as kube-controller-manager has it.
func replicaSetName(foo int) string { return fooName(foo) + "-86d589675b" }

func (l *lab) createReplicaSet(ctx context.Context, i int) error {
	owner, err := l.kube.AppsV1().Deployments(namespace).Get(ctx, fooName(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	rs, err := l.kube.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: replicaSetName(i), Labels: owner.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Selector: owner.Spec.Selector, Template: owner.Spec.Template},
	}, metav1.CreateOptions{})
	if err == nil {
		l.replicaSets.Store(i, rs)
	}
	return err
}

// createOwnPod makes the Pods of one Foo after those of the other, as a rollout does: a Pod for
// each in turn would have all statuses written each second.
func (l *lab) createOwnPod(ctx context.Context, i int) error {
	rs, ok := l.replicaSets.Load(i * *memoryFoos / *memoryPods)
	if !ok {
		return errors.New("a Pod's ReplicaSet was not made")
	}
	owner := rs.(*appsv1.ReplicaSet)
	return l.createPod(ctx, metav1.ObjectMeta{Name: fmt.Sprintf("%s-%06d", owner.Name, i), Labels: owner.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}}, i)
}

func (l *lab) createStrangePod(ctx context.Context, i int) error {
	return l.createPod(ctx, metav1.ObjectMeta{Name: fmt.Sprintf("other-%06d", i), Labels: map[string]string{"app": "other"}}, i)
}

// createPod makes a Pod that is as large as one that a kubelet has written a status of, and
// others have mounted and injected things into: of that, the daemon keeps nothing.
func (l *lab) createPod(ctx context.Context, meta metav1.ObjectMeta, i int) error {
	meta.Annotations = map[string]string{"example.com/padding": strings.Repeat("x", 2000)}
	spec := podSpec()
	spec.NodeName = fmt.Sprintf("node-%d", i%nodes)
	_, err := l.kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
	return err
}
