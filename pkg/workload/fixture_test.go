// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	samplefake "samplecontroller.io/client-go/clientset/versioned/fake"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// fixture is a controller whose informers do not run. Tests move the API server's state
// into the caches with observe.
type fixture struct {
	testing.TB
	kind            kind
	controller      controller
	kube            *kubefake.Clientset
	sample          *samplefake.Clientset
	events          *record.FakeRecorder
	clock           *testingclock.FakeClock
	registry        metrics.KubeRegistry
	writes          *writes.Transport
	kubeInformers   kubeinformers.SharedInformerFactory
	sampleInformers sampleinformers.SharedInformerFactory
	deployments     cache.TypedSharedIndexInformer[*appsv1.Deployment]
	objects         cache.Indexer
	made            []clienttesting.Action // by both clients, in order
}

// key is the key of the example, and deploymentName the name in its spec.
var key = cache.NewObjectName("default", "example")

const deploymentName = "example-web"

// start is when the example is created.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newFixture(t testing.TB, kind kind, o object) *fixture {
	t.Helper()
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(start))
	}
	f := &fixture{
		TB:     t,
		kind:   kind,
		kube:   kubefake.NewClientset(),
		sample: samplefake.NewClientset(o),
		events: record.NewFakeRecorder(10),
		clock:  testingclock.NewFakeClock(start),

		registry: metrics.NewKubeRegistry(),
	}
	workload.CountGenerations(f.kube)
	for _, client := range []*clienttesting.Fake{&f.kube.Fake, &f.sample.Fake} {
		client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			f.made = append(f.made, action)
			return false, nil, nil
		})
	}
	f.writes = writes.New(kind.manager, writes.NewMetrics("test", f.registry.MustRegister), nil)
	f.kubeInformers = kubeinformers.NewSharedInformerFactory(f.kube, 0)
	f.sampleInformers = sampleinformers.NewSharedInformerFactory(f.sample, 0)
	f.deployments = f.kubeInformers.Apps().V1().Deployments().TypedInformer()
	if err := kind.start(f); err != nil {
		t.Fatal(err)
	}
	f.controller.SetClock(f.clock)
	f.controller.CatchUp()
	f.observe()
	return f
}

// chain returns informers that are always empty: there are no Pods.
func (f *fixture) chain() ownership.Informers {
	return ownership.Informers{
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, podrecord.Indexers())),
		ReplicaSets: cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})),
		Deployments: f.deployments,
	}
}

// observe updates the caches from the API server and forgets the calls made so far.
func (f *fixture) observe() {
	f.Helper()
	f.catchUp()
	f.forget()
}

// catchUp updates the caches from the API server.
func (f *fixture) catchUp() {
	f.Helper()
	f.catchUpObjects()
	deployments, err := f.kube.Tracker().List(appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithKind("Deployment"), "")
	if err != nil {
		f.Fatal(err)
	}
	f.replace(f.deployments.GetIndexer(), deployments)
}

// catchUpObjects updates the cache of objects from the API server.
func (f *fixture) catchUpObjects() {
	f.Helper()
	list, err := f.sample.Tracker().List(f.kind.resources(), f.kind.GroupVersionKind, "")
	if err != nil {
		f.Fatal(err)
	}
	f.replace(f.objects, list)
}

func (f *fixture) replace(store cache.Store, list runtime.Object) {
	f.Helper()
	items, err := meta.ExtractList(list)
	if err != nil {
		f.Fatal(err)
	}
	var objects []any
	for _, item := range items {
		objects = append(objects, item)
	}
	if err := store.Replace(objects, ""); err != nil {
		f.Fatal(err)
	}
}

// sync syncs the example, and again after the delay of a status that only reports progress.
func (f *fixture) sync() {
	f.Helper()
	requeueAfter, err := f.controller.Sync(f.Context(), key)
	if err == nil && requeueAfter == workload.StatusDelay {
		f.catchUp()
		f.clock.Step(requeueAfter)
		requeueAfter, err = f.controller.Sync(f.Context(), key)
	}
	if err != nil || requeueAfter != 0 {
		f.Fatalf("sync() = %v, %v", requeueAfter, err)
	}
}

// forget forgets the calls made so far.
func (f *fixture) forget() {
	f.sample.ClearActions()
	f.kube.ClearActions()
	f.made = nil
}

// react adds a reactor to a client. Calls are still recorded.
func (f *fixture) react(client *clienttesting.Fake, verb, resource string, reaction clienttesting.ReactionFunc) {
	client.ReactionChain = slices.Insert(client.ReactionChain, 1, clienttesting.Reactor(&clienttesting.SimpleReactor{Verb: verb, Resource: resource, Reaction: reaction}))
}

// calls returns the API calls since they were last forgotten, as verb and resource. The
// resource of the kind is called "objects".
func (f *fixture) calls() []string {
	var calls []string
	for _, action := range f.made {
		resource := action.GetResource().Resource
		if action.GetResource() == f.kind.resources() {
			resource = "objects"
		}
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

// object returns the example from the API server.
func (f *fixture) object() object {
	f.Helper()
	o, err := f.sample.Tracker().Get(f.kind.resources(), key.Namespace, key.Name)
	if err != nil {
		f.Fatal(err)
	}
	return o.(object)
}

func (f *fixture) deployment() *appsv1.Deployment {
	f.Helper()
	deployment, err := f.kube.AppsV1().Deployments(key.Namespace).Get(f.Context(), deploymentName, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return deployment
}

// update changes the Deployment as another writer.
func (f *fixture) update(change func(*appsv1.Deployment)) {
	f.Helper()
	deployment := f.deployment()
	change(deployment)
	if _, err := f.kube.AppsV1().Deployments(key.Namespace).Update(f.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// ready sets the status as kube-controller-manager does once all Pods are available.
func ready(d *appsv1.Deployment) {
	n := ptr.Deref(d.Spec.Replicas, 1)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
}

// serve makes the example Ready, updates the caches and lets some time pass.
func (f *fixture) serve() {
	f.Helper()
	f.sync()
	f.update(ready)
	f.observe()
	f.sync()
	f.observe()
	f.clock.Step(time.Minute)
}

// refuseStatus makes the API server refuse status writes while the condition holds. After a
// NotFound error, the object is gone.
func (f *fixture) refuseStatus(while *bool, err error) {
	gone := false
	f.react(&f.sample.Fake, "patch", f.kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		gone = apierrors.IsNotFound(err)
		return *while, nil, err
	})
	f.react(&f.sample.Fake, "list", f.kind.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		list, err := f.sample.Tracker().List(f.kind.resources(), f.kind.GroupVersionKind, "none")
		return gone && *while, list, err
	})
}

// refuseDeployments makes the API server refuse a verb on Deployments.
func (f *fixture) refuseDeployments(verb string, err error) {
	f.react(&f.kube.Fake, verb, "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func (f *fixture) wantEvents(want ...string) {
	f.Helper()
	var got []string
	for len(f.events.Events) > 0 {
		got = append(got, <-f.events.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("unexpected Events (-want +got):\n%s", diff)
	}
}
