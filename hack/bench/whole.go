// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// podsPerNode is how many Pods fit on a Node, including a rollout that replaces all.
const podsPerNode = 500

// wholeLoads are loads on a whole cluster, where Deployments get Pods.
var wholeLoads = []load{
	{
		name: "ready", about: "%d Foos are created, on a whole cluster", n: 200, candidates: peersOfWhole, nodes: nodesFor(1),
		run: changes{count: all, change: createWith(1), settle: true}.run,
	},
	{
		name: "rollout", about: "the image of each of %d Foos with 30 replicas changes, on a whole cluster", n: 10, candidates: peersOfWhole, nodes: nodesFor(30),
		run: changes{served: true, first: createWith(30), count: all, change: setImage, settle: true}.run,
	},
	{
		name: "shrink", about: "each of %d Foos is scaled from 10 replicas to 2, on a whole cluster", n: 50, candidates: peersOfWhole, nodes: nodesFor(10),
		run: changes{served: true, first: createWith(10), count: all, change: scaleTo(2), settle: true}.run,
	},
}

const peersOfWhole = "daemon,controller-runtime,counts-only"

func nodesFor(replicas int) func(n int) int {
	return func(n int) int { return 1 + n*replicas/podsPerNode }
}

func createWith(replicas int) func(ctx context.Context, h *harness, namespace, name string) error {
	return func(ctx context.Context, h *harness, namespace, name string) error {
		_, err := h.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, newFoo(name, replicas), metav1.CreateOptions{})
		return err
	}
}

var setImage = patchFoo([]byte(`{"spec":{"image":"nginx:1.29"}}`))

// awaitSettled waits until the Deployments are rolled out and the Foos' statuses say so.
func (t *trial) awaitSettled(ctx context.Context) error {
	return t.await(ctx, t.candidate.name+" has reported all rollouts as complete", func(ctx context.Context) error {
		foos, err := t.sample.SamplecontrollerV1alpha1().Foos(t.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		list, err := t.kube.AppsV1().Deployments(t.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		deployments := map[string]*appsv1.Deployment{}
		for i := range list.Items {
			deployments[list.Items[i].Name] = &list.Items[i]
		}
		for i := range foos.Items {
			foo := &foos.Items[i]
			if d := deployments[foo.Spec.DeploymentName]; d == nil || !settled(foo, d) {
				return fmt.Errorf("%s is not rolled out", foo.Name)
			}
		}
		return t.process.Err()
	})
}

// settled reports whether the Deployment is rolled out as the Foo wants it, and the Foo's
// status says so.
func settled(foo *samplev1alpha1.Foo, d *appsv1.Deployment) bool {
	n, s := *foo.Spec.Replicas, d.Status
	return *d.Spec.Replicas == n && (foo.Spec.Image == "" || d.Spec.Template.Spec.Containers[0].Image == foo.Spec.Image) &&
		s.ObservedGeneration == d.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n &&
		foo.Status.ObservedGeneration == foo.Generation && foo.Status.Replicas == n && foo.Status.AvailableReplicas == n
}
