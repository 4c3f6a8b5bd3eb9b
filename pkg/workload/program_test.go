// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
)

// The example is Foo default/example with one replica, and its Deployment default/example-web.
const (
	namespace      = "default"
	name           = "example"
	deploymentName = "example-web"
)

// The writes of most tests.
const (
	createDeployment = "create deployments.apps default/example-web"
	patchDeployment  = "patch deployments.apps default/example-web"
	patchStatus      = "patch foos/status.samplecontroller.k8s.io default/example"
	synced           = "Normal Synced Foo synced successfully"
)

// env is an API server in memory on which the program runs, in a bubble where time stands still.
type env struct {
	*managertest.Env
	t *testing.T
}

// run runs the program.
func run(t *testing.T, body func(*testing.T, env), args ...string) {
	t.Helper()
	runWithoutCRDs(t, func(t *testing.T, e env) {
		e.InstallCRDs("../../manifests/crds/samplecontroller.k8s.io_foos.yaml")
		body(t, e)
	}, args...)
}

// runWithoutCRDs is run without CRDs, so that the API server stores what it gets.
func runWithoutCRDs(t *testing.T, body func(*testing.T, env), args ...string) {
	t.Helper()
	p := manager.Program{
		Name:        "sample-controller-manager",
		Scheme:      samplescheme.AddToScheme,
		Controllers: []controller.Descriptor{foo.Descriptor()},
	}
	managertest.Run(t, p, func(t *testing.T, e *managertest.Env) { body(t, env{e, t}) }, args...)
}

// example returns the example. It is not created yet.
func example(changes ...func(*samplev1alpha1.Foo)) *samplev1alpha1.Foo {
	f := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: ptr.To[int32](1)},
	}
	for _, change := range changes {
		change(f)
	}
	return f
}

func withReplicas(n int32) func(*samplev1alpha1.Foo) {
	return func(f *samplev1alpha1.Foo) { f.Spec.Replicas = &n }
}

func withDeployment(name string) func(*samplev1alpha1.Foo) {
	return func(f *samplev1alpha1.Foo) { f.Spec.DeploymentName = name }
}

func withImage(image string) func(*samplev1alpha1.Foo) {
	return func(f *samplev1alpha1.Foo) { f.Spec.Image = image }
}

// serve creates the example and makes it Ready, and forgets the writes and Events so far.
func (e env) serve(changes ...func(*samplev1alpha1.Foo)) {
	e.t.Helper()
	e.Create(example(changes...))
	e.pass(0)
	e.rollOut(ready)
	e.pass(time.Minute)
	if !meta.IsStatusConditionTrue(e.foo().Status.Conditions, "Ready") {
		e.t.Fatalf("the example is not Ready: %+v", e.foo().Status)
	}
	e.forget()
}

// pass waits until nothing is left to do, lets time pass, and waits again.
func (e env) pass(d time.Duration) {
	e.t.Helper()
	e.Settle()
	if d > 0 {
		time.Sleep(d)
		e.Settle()
	}
}

// forget forgets the writes and Events so far.
func (e env) forget() {
	e.Writes()
	e.Events()
}

// foo returns the example as the API server has it.
func (e env) foo() *samplev1alpha1.Foo {
	e.t.Helper()
	f, ok := managertest.Get[*samplev1alpha1.Foo](e.Env, namespace, name)
	if !ok {
		e.t.Fatal("the example does not exist")
	}
	return f
}

// change changes the example as its user.
func (e env) change(change func(*samplev1alpha1.Foo)) {
	e.t.Helper()
	managertest.Update(e.Env, namespace, name, change)
}

// condition returns a condition of the example.
func (e env) condition(conditionType string) metav1.Condition {
	e.t.Helper()
	return ptr.Deref(meta.FindStatusCondition(e.foo().Status.Conditions, conditionType), metav1.Condition{})
}

// deployment returns the Deployment of the example as the API server has it.
func (e env) deployment() *appsv1.Deployment {
	e.t.Helper()
	d, ok := managertest.Get[*appsv1.Deployment](e.Env, namespace, deploymentName)
	if !ok {
		e.t.Fatal("the example has no Deployment")
	}
	return d
}

// rollOut changes the Deployment of the example as another writer: a user, or the deployment controller by
// [ready], [available] or [timedOut].
func (e env) rollOut(change func(*appsv1.Deployment)) {
	e.t.Helper()
	managertest.Update(e.Env, namespace, deploymentName, change)
}

// ready sets the status of a Deployment whose Pods are all available.
func ready(d *appsv1.Deployment) { available(ptr.Deref(d.Spec.Replicas, 1))(d) }

// available sets the status of a Deployment of whose Pods n are available.
func available(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		all := ptr.Deref(d.Spec.Replicas, 1)
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: all, UpdatedReplicas: all, ReadyReplicas: all, AvailableReplicas: n,
		}
	}
}

// timedOut sets the status of a Deployment whose rollout has exceeded its deadline.
func timedOut(d *appsv1.Deployment) {
	available(0)(d)
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out",
	}}
}

// wantWrites compares the writes since they were last taken.
func (e env) wantWrites(want ...string) {
	e.t.Helper()
	if diff := cmp.Diff(want, e.Writes()); diff != "" {
		e.t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
}

// wantEvents compares the Events since they were last taken.
func (e env) wantEvents(want ...string) {
	e.t.Helper()
	if diff := cmp.Diff(want, e.Events()); diff != "" {
		e.t.Errorf("unexpected Events (-want +got):\n%s", diff)
	}
}
