// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	eventrecord "k8s.io/client-go/tools/record"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const interval = time.Second

// bubble is a controller of both kinds and its API server, in a synctest bubble. Time in
// there passes only while all goroutines wait.
type bubble struct {
	*testing.T
	controller  *Controller
	objects     *server // of the tested kind
	foos        *server
	icecreams   *server
	consistency *reconcile.ConsistencyStore // of the tested kind
	kube        *kubefake.Clientset
	events      *eventrecord.FakeRecorder
	writes      *writes.Transport
	owner       metav1.OwnerReference // reference to the tested object
	version     int

	mutex    sync.Mutex
	outcomes []reconcile.Result // of syncs of both kinds

	replicaSets  *server
	informers    []cache.SharedInformer
	fooInformer  cache.SharedInformer
	fooInformers context.Context // ends before the others
	stopFoos     context.CancelFunc
}

// inBubble runs a test for an object of each kind called default/example.
func inBubble(t *testing.T, test func(*bubble)) { inBubbleOf(t, interval, test) }

// inBubbleOf is like inBubble with another interval.
func inBubbleOf(t *testing.T, interval time.Duration, test func(*bubble)) {
	for _, example := range []testObject{
		&samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid-example"}, Spec: samplev1alpha1.FooSpec{DeploymentName: "web"}},
		&icecreamv1alpha1.Icecream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid-example"}, Spec: icecreamv1alpha1.IcecreamSpec{DeploymentName: "web"}},
	} {
		gvk := samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
		if _, ok := example.(*icecreamv1alpha1.Icecream); ok {
			gvk = icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream")
		}
		t.Run(gvk.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, gvk, interval)
				b.owner = *metav1.NewControllerRef(example, gvk)
				b.objects.Add(example.DeepCopyObject())
				b.set(deployment(b.metadata("web", b.owner)))
				b.replicaSets.Add(&metav1.PartialObjectMetadata{ObjectMeta: b.metadata("web-1", *owned("Deployment", "web"))})
				test(b)
			})
		})
	}
}

func newBubble(t *testing.T, gvk schema.GroupVersionKind, interval time.Duration) *bubble {
	newServer := func() *server {
		s := &server{FakeControllerSource: cachetesting.NewFakeControllerSource(), begin: time.Now()}
		t.Cleanup(s.Shutdown)
		return s
	}
	b := &bubble{T: t, events: eventrecord.NewFakeRecorder(100), writes: writes.New(ControllerName, nil, nil), kube: kubefake.NewClientset(), foos: newServer(), icecreams: newServer(), replicaSets: newServer()}
	foos := cache.NewTypedSharedIndexInformer[*samplev1alpha1.Foo](cache.NewSharedIndexInformer(b.foos, &samplev1alpha1.Foo{}, 0, nil))
	icecreams := cache.NewTypedSharedIndexInformer[*icecreamv1alpha1.Icecream](cache.NewSharedIndexInformer(b.icecreams, &icecreamv1alpha1.Icecream{}, 0, nil))
	replicaSets := cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(b.replicaSets, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{}))
	pods := coreinformers.NewPodInformer(b.kube, metav1.NamespaceAll, 0, podrecord.Indexers())
	if err := pods.SetTransform(podrecord.Transform); err != nil {
		t.Fatal(err)
	}
	factory := kubeinformers.NewSharedInformerFactory(b.kube, 0)
	chain := ownership.Informers{
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](pods),
		ReplicaSets: replicaSets,
		Deployments: factory.Apps().V1().Deployments().TypedInformer(),
	}
	fooStore, icecreamStore := &reconcile.ConsistencyStore{}, &reconcile.ConsistencyStore{}
	b.objects, b.consistency = b.foos, fooStore
	if gvk.Kind == "Icecream" {
		b.objects, b.consistency = b.icecreams, icecreamStore
	}
	observer := reconcile.WithObserver(func(_ context.Context, o reconcile.Outcome) {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.outcomes = append(b.outcomes, o.Result)
	})
	controller, err := NewController(Options{Informers: chain, Interval: interval, Recorder: b.events, Writes: b.writes, Loop: []reconcile.Option{observer, reconcile.WithWorkers(2)}},
		Foos(foos, fooClient{server: b.foos}, fooStore), Icecreams(icecreams, icecreamClient{server: b.icecreams}, icecreamStore))
	if err != nil {
		t.Fatal(err)
	}
	b.controller, b.fooInformer = controller, foos
	b.informers = []cache.SharedInformer{icecreams, replicaSets, chain.Pods, chain.Deployments}
	return b
}

// startInformers starts the informers; they are stopped and joined at the end.
func (b *bubble) startInformers() {
	ctx, cancel := context.WithCancel(context.Background())
	b.fooInformers, b.stopFoos = context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, informer := range b.informers {
		wg.Go(func() { informer.RunWithContext(ctx) })
	}
	wg.Go(func() { b.fooInformer.RunWithContext(b.fooInformers) })
	b.Cleanup(func() { cancel(); wg.Wait() })
	synctest.Wait()
}

// start runs the controller until the end of the test.
func (b *bubble) start() {
	b.startInformers()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.controller.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("Run() = %v", err)
		}
	})
	synctest.Wait()
}

// after lets this much time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantWrites checks the status writes of the tested object since the last call.
func (b *bubble) wantWrites(want ...write) {
	b.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, b.objects.made()); diff != "" {
		b.Errorf("unexpected writes of the status (-want +got):\n%s", diff)
	}
}

// results returns the results of the syncs since the last call.
func (b *bubble) results() []reconcile.Result {
	synctest.Wait()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	results := b.outcomes
	b.outcomes = nil
	return results
}

// change changes the tested object as its owner does. The caches get the change if watched
// is set.
func (b *bubble) change(watched bool, change func(testObject)) {
	o := b.objects.object("default", "example")
	change(o)
	if watched {
		b.objects.Modify(o)
	} else {
		b.objects.ModifyDropWatch(o)
	}
}

// metadata returns the metadata of a new version of an object.
func (b *bubble) metadata(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	b.version++
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(b.version), OwnerReferences: owners}
}

func owned(kind, by string) *metav1.OwnerReference {
	return metav1.NewControllerRef(&metav1.ObjectMeta{Name: by, UID: types.UID("uid-" + by)}, appsv1.SchemeGroupVersion.WithKind(kind))
}

// deployment returns a Deployment whose Pods are watched.
func deployment(metadata metav1.ObjectMeta) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metadata,
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"controller": "example"}}},
	}
}

func resourceOf(o runtime.Object) schema.GroupVersionResource {
	if _, ok := o.(*corev1.Pod); ok {
		return corev1.SchemeGroupVersion.WithResource("pods")
	}
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

// set creates or replaces a Pod or a Deployment.
func (b *bubble) set(o runtime.Object) {
	b.Helper()
	err := b.kube.Tracker().Create(resourceOf(o), o, "default")
	if err != nil {
		err = b.kube.Tracker().Update(resourceOf(o), o, "default")
	}
	if err != nil {
		b.Fatal(err)
	}
}

// pod returns a running Pod of the tested object on node-1.
func (b *bubble) pod(name string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	metadata := b.metadata(name, *owned("ReplicaSet", "web-1"))
	metadata.Labels = map[string]string{"controller": "example"}
	return &corev1.Pod{
		ObjectMeta: metadata,
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

func (b *bubble) deletePod(name string) {
	b.Helper()
	if err := b.kube.Tracker().Delete(resourceOf(&corev1.Pod{}), "default", name); err != nil {
		b.Fatal(err)
	}
}
