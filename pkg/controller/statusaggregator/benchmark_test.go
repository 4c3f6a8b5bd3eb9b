// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/utils/clock"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

var fooKind = schema.GroupVersionKind{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Kind: "Foo"}

// BenchmarkPodEvent measures the cost of one change of a Pod, from its decoded form to the
// decision which key it enqueues: transform, cache, indexes, owner chain and throttling. The
// sync at the end of the interval is not included: see [BenchmarkUnchangedSync].
//
//	go test -run '^$' -bench PodEvent ./pkg/controller/statusaggregator
//
// The result must not vary by more than 2x over all sizes.
func BenchmarkPodEvent(b *testing.B) {
	for _, pods := range []int{1_000, 10_000, 100_000} {
		for _, objects := range []int{1_000, 1} {
			b.Run(fmt.Sprintf("%d Pods of %d", pods, objects), func(b *testing.B) { benchmarkPodEvent(b, pods, objects) })
		}
	}
}

func benchmarkPodEvent(b *testing.B, pods, objects int) {
	c := newBenchmarkCaches(b, objects)
	ofPod := c.chain.OfPod(fooKind)
	all := c.fill(b, pods, objects)
	version := pods
	b.ReportAllocs()
	for b.Loop() {
		version++
		pod := all[version%pods]
		pod.ResourceVersion = strconv.Itoa(version)
		pod.Status.ContainerStatuses[0].RestartCount++

		transformed, err := podrecord.Transform(pod)
		if err != nil {
			b.Fatal(err)
		}
		now := transformed.(*podrecord.Record)
		cached, exists, err := c.pods.GetIndexer().GetByKey(now.GetNamespace() + "/" + now.GetName())
		if err != nil || !exists {
			b.Fatal(exists, err)
		}
		before := cached.(*podrecord.Record)
		if err := c.pods.GetIndexer().Update(now); err != nil {
			b.Fatal(err)
		}
		if !saysOther(before, now) {
			b.Fatal("the Pod has not changed")
		}
		for _, record := range []*podrecord.Record{before, now} {
			if enqueued := c.aggregator.unthrottled(ofPod(record)); len(enqueued) > 0 {
				b.Fatalf("enqueued throttled objects %v", enqueued)
			}
		}
	}
	for i := range objects {
		if owners := ofPod(podrecord.New(benchmarkPod(i, i))); len(owners) != 1 {
			b.Fatalf("a Pod has the owners %v, want one object", owners)
		}
	}
}

// BenchmarkUnchangedSync measures the sync of an object with this many Pods whose status is
// up to date.
func BenchmarkUnchangedSync(b *testing.B) {
	for _, pods := range []int{1, 200, 10_000} {
		b.Run(fmt.Sprintf("%d Pods", pods), func(b *testing.B) {
			c := newBenchmarkCaches(b, 1)
			c.fill(b, pods, 1)
			c.aggregator.pace = reconcile.NewPace(0, clock.RealClock{})
			key := cache.NewObjectName("default", "foo-0")
			cached, _, err := c.aggregator.objects.GetByKey(key.String())
			if err != nil {
				b.Fatal(err)
			}
			foo := cached.(*samplev1alpha1.Foo)
			owned, err := c.chain.DeploymentsOf(foo.Namespace, foo.UID)
			if err != nil || len(owned) != 1 {
				b.Fatalf("DeploymentsOf() = %v, %v, want one", owned, err)
			}
			found, err := c.chain.PodsOf(owned[0])
			if err != nil || len(found) != pods {
				b.Fatalf("PodsOf() = %d Pods, %v, want %d", len(found), err, pods)
			}
			summary := summarize(found)
			foo.Status.Pods = &summary
			b.ReportAllocs()
			for b.Loop() {
				if wait, err := c.aggregator.sync(b.Context(), key); err != nil || wait != 0 {
					b.Fatalf("sync() = %v, %v, want nothing to do", wait, err)
				}
			}
		})
	}
}

// benchmarkCaches are the caches of an aggregator of Foos.
type benchmarkCaches struct {
	pods       cache.TypedSharedIndexInformer[*podrecord.Record]
	chain      *ownership.Chain
	aggregator *aggregator[*samplev1alpha1.Foo]
}

// fill caches Pods, assigned to the objects in turn, and returns them.
func (c benchmarkCaches) fill(b *testing.B, pods, objects int) []*corev1.Pod {
	all := make([]*corev1.Pod, pods)
	for i := range all {
		all[i] = benchmarkPod(i, i%objects)
		if err := c.pods.GetIndexer().Add(podrecord.New(all[i])); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

func newBenchmarkCaches(b *testing.B, objects int) benchmarkCaches {
	source := cachetesting.NewFakeControllerSource() // empty: the informers do not run
	b.Cleanup(source.Shutdown)
	foos := cache.NewTypedSharedIndexInformer[*samplev1alpha1.Foo](cache.NewSharedIndexInformer(source, &samplev1alpha1.Foo{}, 0, cache.Indexers{}))
	replicaSets := cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{}))
	informers := ownership.Informers{
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, podrecord.Indexers())),
		ReplicaSets: replicaSets,
		Deployments: cache.NewTypedSharedIndexInformer[*appsv1.Deployment](cache.NewSharedIndexInformer(source, &appsv1.Deployment{}, 0, cache.Indexers{})),
	}
	chain, err := ownership.NewChain(informers)
	if err != nil {
		b.Fatal(err)
	}
	a := &aggregator[*samplev1alpha1.Foo]{
		kind: kind[*samplev1alpha1.Foo]{
			groupVersionKind: fooKind,
			owner:            kinds.FooOwner,
			summary:          func(foo *samplev1alpha1.Foo) *workloadv1alpha1.PodSummary { return foo.Status.Pods },
		},
		objects:     foos.GetTypedIndexer(),
		chain:       chain,
		consistency: &reconcile.ConsistencyStore{},
		pace:        reconcile.NewPace(24*time.Hour, clock.RealClock{}),
	}
	a.refusals = workload.NewStatusRefusals[*samplev1alpha1.Foo]("foos/status", nil, nil, nil)
	for i := range objects {
		foo := &samplev1alpha1.Foo{ObjectMeta: benchmarkMetadata("foo", i, nil), Spec: samplev1alpha1.FooSpec{DeploymentName: fmt.Sprintf("deployment-%d", i)}}
		deployment := deployment(benchmarkMetadata("deployment", i, metav1.NewControllerRef(foo, fooKind)))
		replicaSet := &metav1.PartialObjectMetadata{ObjectMeta: benchmarkMetadata("replicaset", i, owned("Deployment", deployment.Name))}
		for indexer, o := range map[cache.Indexer]runtime.Object{foos.GetIndexer(): foo, replicaSets.GetIndexer(): replicaSet, informers.Deployments.GetIndexer(): deployment} {
			if err := indexer.Add(o); err != nil {
				b.Fatal(err)
			}
		}
		if err := a.pace.Write(cache.MetaObjectToName(foo), foo.UID, reconcile.Transition, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	return benchmarkCaches{informers.Pods, chain, a}
}

func benchmarkMetadata(what string, i int, owner *metav1.OwnerReference) metav1.ObjectMeta {
	metadata := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", what, i), UID: types.UID(fmt.Sprintf("uid-%s-%d", what, i)), ResourceVersion: "1"}
	if owner != nil {
		metadata.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return metadata
}

func benchmarkPod(i, object int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: benchmarkMetadata("pod", i, owned("ReplicaSet", fmt.Sprintf("replicaset-%d", object))),
		Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%100)},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}
