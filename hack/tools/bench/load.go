// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// load is a load under which candidates are compared.
type load struct {
	name       string
	about      string // a format with a %d for n
	n          int    // unless the command line says otherwise
	candidates string // unless the command line says otherwise
	// run runs one candidate.
	run func(ctx context.Context, t *trial) (result, error)
}

// changes is a load that makes changes, whose effects are read from the audit log.
type changes struct {
	served bool // all Foos have a Deployment and a status at the start
	before bool // make the changes before the candidate starts, and measure from its start
	// change changes a Foo or its Deployment. call is the call in the audit log.
	change func(ctx context.Context, h *harness, namespace, name string) error
	call   string
	// status waits for the status, too, not only for the Deployment.
	status bool
}

const (
	usual    = "daemon,controller-runtime"
	electors = "all-controllers,controller-runtime-elector"
)

// creation also warms up API servers, and creates the Foos that other loads start with.
var creation = load{
	name: "create", about: "%d Foos are created", n: 1000, candidates: usual,
	run: creating.run,
}

var creating = changes{change: create, call: "create foos", status: true}

var loads = []load{
	creation,
	{
		name: "scale", about: "each of %d Foos is scaled", n: 1000, candidates: usual,
		run: changes{served: true, change: scaleTo(2), call: "patch foos", status: true}.run,
	},
	{
		name: "drift", about: "another client scales the Deployment of each of %d Foos", n: 1000, candidates: usual,
		run: changes{served: true, change: drift, call: "patch deployments"}.run,
	},
	{
		name: "backlog", about: "the candidate starts with %d unprocessed Foos", n: 1000, candidates: usual,
		run: changes{before: true, change: create, call: "create foos", status: true}.run,
	},
	{
		name: "handover", about: "the leader of two replicas gets SIGTERM, with %d cached Foos", n: 5000,
		candidates: electors, run: handover(syscall.SIGTERM),
	},
	{
		name: "kill", about: "the leader of two replicas is killed, with %d cached Foos", n: 1000,
		candidates: electors, run: handover(syscall.SIGKILL),
	},
}

func fooName(i int) string { return fmt.Sprintf("foo-%05d", i) }

func newFoo(name string, replicas int) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To(int32(replicas))},
	}
}

func create(ctx context.Context, h *harness, namespace, name string) error {
	_, err := h.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, newFoo(name, 1), metav1.CreateOptions{})
	return err
}

func scaleTo(replicas int) func(ctx context.Context, h *harness, namespace, name string) error {
	return func(ctx context.Context, h *harness, namespace, name string) error {
		_, err := h.sample.SamplecontrollerV1alpha1().Foos(namespace).
			Patch(ctx, name, types.MergePatchType, replicasPatch(replicas), metav1.PatchOptions{})
		return err
	}
}

func drift(ctx context.Context, h *harness, namespace, name string) error {
	_, err := h.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, replicasPatch(5),
		metav1.PatchOptions{})
	return err
}

func replicasPatch(replicas int) []byte {
	return fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
}
