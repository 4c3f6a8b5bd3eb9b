// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

const (
	clients = 32       // that make or change Pods at once
	podNode = "node-1" // of all Pods
)

// createPods creates Foos with as many Pods each, and what is between, as
// kube-controller-manager would.
func (l *lab) createPods(ctx context.Context, foos, each int) error {
	if foos < 1 || foos > fooCount || each < 1 {
		return fmt.Errorf("-churn-foos must be from 1 to %d, and -churn-pods no less than -churn-foos", fooCount)
	}
	errs := make([]error, foos)
	workqueue.ParallelizeUntil(ctx, clients, foos, func(i int) { errs[i] = l.createPodsOf(ctx, fooName(i), each) })
	return errors.Join(append(errs, ctx.Err())...)
}

func (l *lab) createPodsOf(ctx context.Context, name string, each int) error {
	labels := map[string]string{"app": "nginx", "controller": name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{NodeName: podNode, Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	owned := func(name string, owner metav1.Object, kind schema.GroupVersionKind) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}}
	}
	foo, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To(int32(each))},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	deployment, err := l.kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: owned(name, foo, samplev1alpha1.SchemeGroupVersion.WithKind("Foo")),
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	replicaSet, err := l.kube.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: owned(name, deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	for i := 0; i < each && err == nil; i++ {
		_, err = l.kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: owned(podName(name, i), replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
			Spec:       template.Spec,
		}, metav1.CreateOptions{})
	}
	return err
}

func podName(foo string, i int) string { return fmt.Sprintf("%s-%05d", foo, i) }

// fooOfPod is the inverse of podName.
func fooOfPod(pod string) string { return pod[:len(pod)-len("-00000")] }

// forgetTold makes all statuses say nothing of Pods, so that who writes them next shows
// that it works.
func (l *lab) forgetTold(ctx context.Context, foos int) error {
	for i := range foos {
		_, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Patch(ctx, fooName(i), types.MergePatchType, []byte(`{"status":{"pods":null}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			return err
		}
	}
	return nil
}

// waitTold waits until each Foo says how many Pods it has.
func (l *lab) waitTold(ctx context.Context, foos, each int) error {
	return l.awaitTold(ctx, foos, func(_ int, pods *workloadv1alpha1.PodSummary) bool { return int(pods.Total) == each })
}

// waitLastTold waits until each Foo tells of all restarts that were made.
func (l *lab) waitLastTold(ctx context.Context, foos int) error {
	restarts := make([]int64, foos)
	for n := range l.restarts {
		restarts[n%foos] += int64(l.restarts[n].Load())
	}
	return l.awaitTold(ctx, foos, func(foo int, pods *workloadv1alpha1.PodSummary) bool { return pods.Restarts == restarts[foo] })
}

func (l *lab) awaitTold(ctx context.Context, foos int, tells func(foo int, pods *workloadv1alpha1.PodSummary) bool) error {
	return await(ctx, "all statuses tell of the Pods", time.Second, func() error {
		list, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		told := 0
		for i, foo := range list.Items { // by name, as they are numbered
			if foo.Status.Pods != nil && tells(i, foo.Status.Pods) {
				told++
			}
		}
		if told < foos {
			return fmt.Errorf("%d Foos do", told)
		}
		return nil
	})
}

// changePods has a container of one Pod after the other restarted, at a rate, and returns
// how many were.
func (l *lab) changePods(ctx context.Context, foos, each, rate int, period time.Duration) (made int, err error) {
	if l.restarts == nil {
		l.restarts = make([]atomic.Int32, foos*each)
	}
	due := make(chan int) // the number of a Pod
	errs := make([]error, clients)
	var changing sync.WaitGroup
	for i := range clients {
		changing.Go(func() {
			for n := range due {
				patch := fmt.Appendf(nil, `{"status":{"phase":"Running","containerStatuses":[{"name":"nginx","image":"nginx:latest","imageID":"","ready":true,"restartCount":%d}]}}`, l.restarts[n].Add(1))
				_, err := l.kube.CoreV1().Pods(namespace).Patch(ctx, podName(fooName(n%foos), n/foos), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for end := time.Now().Add(period); time.Now().Before(end) && ctx.Err() == nil; made++ {
		<-tick.C
		due <- made % (foos * each) // one Foo after the other
	}
	close(due)
	changing.Wait()
	return made, errors.Join(append(errs, ctx.Err())...)
}

// told is what a status said, and when it was written.
type told struct {
	at       time.Time
	restarts int
}

// readTold returns from the audit log what the statuses of each Foo have said so far.
func (l *lab) readTold() (map[string][]told, error) {
	writes, err := l.cluster.AuditEvents(cluster.InNamespace(namespace), func(event auditv1.Event) bool {
		return cluster.Call(event) == "patch foos/status" && event.ResponseStatus.Code/100 == 2
	})
	if err != nil {
		return nil, err
	}
	all := map[string][]told{}
	for _, event := range writes {
		var said samplev1alpha1.Foo
		if err := json.Unmarshal(event.RequestObject.Raw, &said); err != nil {
			return nil, fmt.Errorf("decoding a status from the audit log: %w", err)
		}
		if said.Status.Pods != nil {
			foo := event.ObjectRef.Name
			all[foo] = append(all[foo], told{event.StageTimestamp.Time, int(said.Status.Pods.Restarts)})
		}
	}
	return all, nil
}

// readChurn finds when each change of a Pod was told. Each adds one restart to those of
// its Foo, and each status says how many there are.
func (l *lab) readChurn(c *churned, since time.Time) error {
	statuses, err := l.readTold()
	if err != nil {
		return err
	}
	restarts := map[string]int{}
	for foo, all := range statuses {
		for i, status := range all {
			if status.at.Before(since) {
				restarts[foo] = status.restarts
				continue
			}
			c.writes++
			if i > 0 && status.at.Sub(all[i-1].at) < aggregationInterval*9/10 {
				c.tooSoon++
			}
		}
	}
	changes, err := l.cluster.AuditEvents(cluster.InNamespace(namespace), func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(since) && cluster.Call(event) == "patch pods/status"
	})
	if err != nil {
		return err
	}
	for _, event := range changes {
		foo := fooOfPod(event.ObjectRef.Name)
		restarts[foo]++
		i := slices.IndexFunc(statuses[foo], func(status told) bool { return status.restarts >= restarts[foo] })
		if i < 0 {
			c.never++
			continue
		}
		c.lags = append(c.lags, statuses[foo][i].at.Sub(event.StageTimestamp.Time))
	}
	if len(c.lags) == 0 {
		return errors.New("the audit log has no status that tells of a change")
	}
	return nil
}
