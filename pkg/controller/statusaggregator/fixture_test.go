// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const crds = "../../../manifests/crds/"

// bubble is a program with only the status-aggregator-controller, and its API server. Time passes only while
// all goroutines wait.
type bubble struct {
	*testing.T
	*managertest.Env
	kind       schema.GroupVersionKind // of the tested object
	controller controller.Explainer
	rules      []rbacv1.PolicyRule   // that the controller has declared
	web1       metav1.OwnerReference // to the ReplicaSet of the tested object's Deployment
}

// inBubble runs a test for an object of each kind called default/example, with a Deployment that has one
// ReplicaSet.
func inBubble(t *testing.T, test func(*bubble), args ...string) {
	t.Run("Foo", func(t *testing.T) {
		run(t, &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web"}},
			foo.Adapter.GroupVersionKind, test, args)
	})
	t.Run("Icecream", func(t *testing.T) {
		run(t, &icecreamv1alpha1.Icecream{Spec: icecreamv1alpha1.IcecreamSpec{DeploymentName: "web"}},
			icecream.Adapter.GroupVersionKind, test, args)
	})
}

func run(t *testing.T, example managertest.Object, kind schema.GroupVersionKind, test func(*bubble), args []string) {
	var built, rules atomic.Value
	d := Descriptor()
	newController := d.New
	d.New = func(ctx context.Context, c *controller.Context) (controller.Controller, error) {
		made, err := newController(ctx, c)
		if err == nil {
			built.Store(made)
			rules.Store(c.Rules())
		}
		return made, err
	}
	program := manager.Program{
		Name: "test-manager", Port: 10290, Description: "Summarizes Pods.", Scheme: samplescheme.AddToScheme,
		Controllers: []controller.Descriptor{d},
	}
	managertest.Run(t, program, func(t *testing.T, e *managertest.Env) {
		e.InstallCRDs(crds+"samplecontroller.k8s.io_foos.yaml", crds+"controller.nicoleh.io_icecreams.yaml")
		e.Settle()
		b := &bubble{T: t, Env: e, kind: kind, controller: built.Load().(controller.Explainer),
			rules: rules.Load().([]rbacv1.PolicyRule)}
		example.SetNamespace("default")
		example.SetName("example")
		e.Create(example)
		b.deploy()
		test(b)
	}, args...)
}

// deploy creates the Deployment of the tested object and its ReplicaSet.
func (b *bubble) deploy() {
	b.Helper()
	b.Create(deployment("web", *metav1.NewControllerRef(b.object(), b.kind)))
	b.web1 = b.replicaSet("web-1")
}

// replicaSet creates a ReplicaSet of the Deployment.
func (b *bubble) replicaSet(name string) metav1.OwnerReference {
	b.Helper()
	web, _ := managertest.Get[*appsv1.Deployment](b.Env, "default", "web")
	rs := &appsv1.ReplicaSet{ObjectMeta: metadata(name,
		*metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("Deployment")))}
	b.Create(rs)
	created, _ := managertest.Get[*appsv1.ReplicaSet](b.Env, "default", name)
	return *metav1.NewControllerRef(created, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
}

// object returns the tested object.
func (b *bubble) object() managertest.Object {
	b.Helper()
	if b.kind.Kind == "Foo" {
		foo, _ := managertest.Get[*samplev1alpha1.Foo](b.Env, "default", "example")
		return foo
	}
	icecream, _ := managertest.Get[*icecreamv1alpha1.Icecream](b.Env, "default", "example")
	return icecream
}

// statusOf returns the status of a Foo or an Icecream.
func statusOf(object managertest.Object) *workloadv1alpha1.Status {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return &foo.Status.Status
	}
	return &object.(*icecreamv1alpha1.Icecream).Status.Status
}

// change changes the tested object.
func (b *bubble) change(change func(managertest.Object)) {
	b.Helper()
	if b.kind.Kind == "Foo" {
		managertest.Update(b.Env, "default", "example", func(foo *samplev1alpha1.Foo) { change(foo) })
	} else {
		managertest.Update(b.Env, "default", "example", func(icecream *icecreamv1alpha1.Icecream) { change(icecream) })
	}
}

// after lets this much time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// noSummary is the summary of an object without one.
const noSummary = "(no summary)"

// wantWrites checks that the given summary was written now, or none if it is "".
func (b *bubble) wantWrites(summary string) {
	b.Helper()
	synctest.Wait()
	writes := b.Writes()
	if summary == "" {
		if len(writes) > 0 {
			b.Errorf("writes %q, want none", writes)
		}
		return
	}
	if len(writes) != 1 {
		b.Errorf("writes %q, want one", writes)
	}
	got := noSummary
	if written := statusOf(b.object()).Pods; written != nil {
		got = written.Summary
	}
	if got != summary {
		b.Errorf("summary %q, want %q", got, summary)
	}
}

func metadata(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{pods.Selector: "example"},
		OwnerReferences: owners}
}

// deployment returns a Deployment whose Pods are watched.
func deployment(name string, owners ...metav1.OwnerReference) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metadata(name, owners...),
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{pods.Selector: "example"}}},
	}
}

// pod creates a running Pod of the tested object on node-1. It gets its owner last, because its status is
// written after it is created.
func (b *bubble) pod(name string, isReady bool) {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metadata(name),
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if isReady {
		ready(pod)
	}
	b.Create(pod)
	managertest.Update(b.Env, "default", name, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{b.web1} })
}

// ready sets whether a Pod is ready.
func (b *bubble) ready(name string, isReady bool) {
	b.Helper()
	managertest.Update(b.Env, "default", name, func(pod *corev1.Pod) {
		if pod.Status.Conditions = nil; isReady {
			ready(pod)
		}
	})
}

func (b *bubble) deletePod(name string) {
	b.Helper()
	b.Delete(&corev1.Pod{ObjectMeta: metadata(name)})
	synctest.Wait()
	if pod, ok := managertest.Get[*corev1.Pod](b.Env, "default", name); ok {
		b.Fatalf("Pod %s still exists: %v", name, pod.DeletionTimestamp)
	}
}

// controlledBy returns the owner references of an object of the controller.
func controlledBy(owner managertest.Object, kind schema.GroupVersionKind) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
}
