// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplefake "samplecontroller.io/client-go/clientset/versioned/fake"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
)

// fixture is a controller whose informers do not run: the test is the cache, and
// moves what the API server holds into it with observe.
type fixture struct {
	*testing.T
	controller *Controller
	kube       *kubefake.Clientset
	sample     *samplefake.Clientset
	events     *record.FakeRecorder
	clock      *testingclock.FakeClock
	foos       cache.Indexer
	deploys    cache.Indexer
}

var key = cache.NewObjectName("default", "example-foo")

func newFixture(t *testing.T, foo *samplev1alpha1.Foo) *fixture {
	t.Helper()
	f := &fixture{
		T:      t,
		kube:   kubefake.NewClientset(),
		sample: samplefake.NewClientset(foo),
		events: record.NewFakeRecorder(10),
		clock:  testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	foos := sampleinformers.NewSharedInformerFactory(f.sample, 0).Samplecontroller().V1alpha1().Foos().TypedInformer()
	deployments := kubeinformers.NewSharedInformerFactory(f.kube, 0).Apps().V1().Deployments().TypedInformer()
	controller, err := NewController(foos, deployments, f.sample.SamplecontrollerV1alpha1(), f.kube.AppsV1(), f.events, 1)
	if err != nil {
		t.Fatal(err)
	}
	controller.clock = f.clock
	f.controller, f.foos, f.deploys = controller, foos.GetIndexer(), deployments.GetIndexer()
	f.observe()
	return f
}

// observe brings the caches up to date with the API server and forgets the calls
// made so far.
func (f *fixture) observe() {
	f.Helper()
	foos, err := f.sample.SamplecontrollerV1alpha1().Foos("").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	deployments, err := f.kube.AppsV1().Deployments("").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	var objects []any
	for i := range foos.Items {
		objects = append(objects, &foos.Items[i])
	}
	if err := f.foos.Replace(objects, ""); err != nil {
		f.Fatal(err)
	}
	objects = nil
	for i := range deployments.Items {
		objects = append(objects, &deployments.Items[i])
	}
	if err := f.deploys.Replace(objects, ""); err != nil {
		f.Fatal(err)
	}
	f.sample.ClearActions()
	f.kube.ClearActions()
}

func (f *fixture) sync() {
	f.Helper()
	if requeueAfter, err := f.controller.sync(f.Context(), key); err != nil || requeueAfter != 0 {
		f.Fatalf("sync() = %v, %v", requeueAfter, err)
	}
}

// calls returns the API calls since the last observe, as verb and resource.
func (f *fixture) calls() []string {
	var calls []string
	for _, action := range append(f.kube.Actions(), f.sample.Actions()...) {
		resource := action.GetResource().Resource
		if action.GetSubresource() != "" {
			resource += "/" + action.GetSubresource()
		}
		calls = append(calls, action.GetVerb()+" "+resource)
	}
	return calls
}

func (f *fixture) wantCalls(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.calls()); diff != "" {
		f.Errorf("unexpected API calls (-want +got):\n%s", diff)
	}
}

func (f *fixture) foo() *samplev1alpha1.Foo {
	f.Helper()
	foo, err := f.sample.SamplecontrollerV1alpha1().Foos(key.Namespace).Get(f.Context(), key.Name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return foo
}

func (f *fixture) deployment() *appsv1.Deployment {
	f.Helper()
	deployment, err := f.kube.AppsV1().Deployments(key.Namespace).Get(f.Context(), "example-foo", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return deployment
}

// update changes the Deployment as another writer would.
func (f *fixture) update(change func(*appsv1.Deployment)) {
	f.Helper()
	deployment := f.deployment()
	change(deployment)
	if _, err := f.kube.AppsV1().Deployments(key.Namespace).Update(f.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// ready changes the Deployment as kube-controller-manager does once all Pods run.
func ready(d *appsv1.Deployment) {
	n := ptr.Deref(d.Spec.Replicas, 1)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
}

func (f *fixture) wantEvents(want ...string) {
	f.Helper()
	var got []string
	for {
		select {
		case event := <-f.events.Events:
			got = append(got, event)
			continue
		default:
		}
		break
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("unexpected Events (-want +got):\n%s", diff)
	}
}

func exampleFoo() *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, UID: "uid-foo", Generation: 1, ResourceVersion: "1"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "example-foo", Replicas: ptr.To[int32](1)},
		Status:     samplev1alpha1.FooStatus{ObservedGeneration: -1},
	}
}
