// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// FuzzSync aggregates arbitrary Pods of a Foo into its status until nothing is written.
func FuzzSync(f *testing.F) {
	for _, pods := range []string{
		``,
		`{"apiVersion":"v1","kind":"PodList","items":[]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","uid":"a"},"spec":{"nodeName":"node-1"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}},{"metadata":{"name":"b","uid":"b"},"spec":{"nodeName":"node-2"},"status":{"phase":"Failed"}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","ownerReferences":[{"uid":"uid-web-1","controller":false}]}},{"metadata":{"name":"b","namespace":"other"}},{"metadata":{"name":"c","ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"forged","controller":true}]}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"status":{"phase":"?","containerStatuses":[{"restartCount":2147483647,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}}},{"restartCount":2147483647},{"restartCount":-5}]}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"node-1"},"status":{"phase":"Running"}},{"metadata":{"name":"b","deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Succeeded"}}]}`,
	} {
		f.Add([]byte(pods), uint8(1))
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}]}`), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, copies uint8) {
		pods := podsFor(data, copies)
		clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
		a, written := newAggregator(t, clock, pods)
		var records []*podrecord.Record // Pods of the Foo
		for _, pod := range pods {
			if owner := metav1.GetControllerOf(pod); pod.Namespace == "default" && owner != nil && owner.UID == "uid-web-1" {
				records = append(records, podrecord.New(pod))
			}
		}
		for range 2 {
			wait, err := a.sync(t.Context(), example)
			if err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(max(wait, interval)))
		}
		// With no Pods the first sync waits for the grace period, and the second writes.
		if len(*written) != 1 {
			t.Fatalf("%d writes, want one", len(*written))
		}
		check(t, (*written)[0], records)
		slices.Reverse(records)
		if again := summarize(records); !equality.Semantic.DeepEqual((*written)[0], again) {
			t.Errorf("summary of the same Pods in another order: %+v, want %+v", again, (*written)[0])
		}
	})
}

var example = cache.NewObjectName("default", "example")

// podsFor decodes a list of Pods as a client does, and copies each. Pods without a
// namespace or an owner are assigned to the Foo.
func podsFor(data []byte, copies uint8) (pods []*corev1.Pod) {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	list, ok := decoded.(*corev1.PodList)
	if err != nil || !ok {
		return nil
	}
	known := map[string]bool{}
	for i := range list.Items {
		for n := range max(int(copies), 1) {
			pod := list.Items[i].DeepCopy()
			if pod.Namespace == "" {
				pod.Namespace = "default"
			}
			if pod.OwnerReferences == nil {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-web-1", Controller: ptr.To(true)}}
			}
			if n > 0 {
				suffix := string(rune('a'+n%26)) + string(rune('a'+n/26))
				pod.Name += suffix
				if pod.Spec.NodeName != "" {
					pod.Spec.NodeName += suffix
				}
			}
			if name := pod.Namespace + "/" + pod.Name; !known[name] {
				known[name] = true
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// newAggregator returns an aggregator with the Pods and the Foo default/example, and the
// summaries that it writes. The cache has the writes at once.
func newAggregator(t *testing.T, clock clock.PassiveClock, pods []*corev1.Pod) (*aggregator[*samplev1alpha1.Foo], *[]workloadv1alpha1.PodSummary) {
	t.Helper()
	informers := ownership.Informers{ // they do not run
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, podrecord.Indexers())),
		ReplicaSets: cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})),
		Deployments: cache.NewTypedSharedIndexInformer[*appsv1.Deployment](cache.NewSharedIndexInformer(&cache.ListWatch{}, &appsv1.Deployment{}, 0, cache.Indexers{})),
	}
	foos := cache.NewTypedSharedIndexInformer[*samplev1alpha1.Foo](cache.NewSharedIndexInformer(&cache.ListWatch{}, &samplev1alpha1.Foo{}, 0, cache.Indexers{}))
	chain, err := ownership.NewChain(informers)
	if err != nil {
		t.Fatal(err)
	}
	gvk := samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
	foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid-example", ResourceVersion: "1"}, Spec: samplev1alpha1.FooSpec{DeploymentName: "web"}}
	deployment := deployment(metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, gvk)}})
	replicaSet := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", UID: "uid-web-1", OwnerReferences: []metav1.OwnerReference{*owned("Deployment", "web")}}}
	add := func(store cache.Store, obj any) {
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	add(foos.GetStore(), foo)
	add(informers.Deployments.GetStore(), deployment)
	add(informers.ReplicaSets.GetStore(), replicaSet)
	for _, pod := range pods {
		add(informers.Pods.GetStore(), podrecord.New(pod))
	}
	written := &[]workloadv1alpha1.PodSummary{}
	return &aggregator[*samplev1alpha1.Foo]{
		kind: kind[*samplev1alpha1.Foo]{
			groupVersionKind: gvk,
			resource:         "foos",
			owner:            kinds.FooOwner,
			summary:          func(foo *samplev1alpha1.Foo) *workloadv1alpha1.PodSummary { return foo.Status.Pods },
			apply: func(_ context.Context, foo *samplev1alpha1.Foo, pods *workloadv1alpha1.PodSummary) (*samplev1alpha1.Foo, error) {
				*written = append(*written, *pods)
				foo = foo.DeepCopy()
				foo.Status.Pods = pods
				add(foos.GetStore(), foo)
				return foo, nil
			},
		},
		objects:     foos.GetTypedIndexer(),
		chain:       chain,
		consistency: &reconcile.ConsistencyStore{},
		pace:        reconcile.NewPace(interval, clock),
		interval:    interval,
		refusals:    workload.NewStatusRefusals[*samplev1alpha1.Foo]("foos/status", nil, nil, nil),
	}, written
}

// check checks a summary against its schema and against the Pods.
func check(t *testing.T, s workloadv1alpha1.PodSummary, pods []*podrecord.Record) {
	t.Helper()
	if s.Pending+s.Running+s.Unknown != s.Total || int(s.Total+s.Succeeded+s.Failed+s.Terminating) != len(pods) || s.Ready > s.Total {
		t.Errorf("of %d Pods: %+v", len(pods), s)
	}
	nodes := map[string]int32{}
	for _, pod := range pods {
		if pod.Node() != "" && pod.Active() {
			nodes[pod.Node()]++
		}
	}
	if len(s.Nodes) > maxNodes || len(s.Nodes)+int(s.NodesOmitted) != len(nodes) {
		t.Errorf("%d nodes and %d more, want %d in all", len(s.Nodes), s.NodesOmitted, len(nodes))
	}
	for _, node := range s.Nodes {
		if node.Pods != nodes[node.Name] || node.Ready > node.Pods || utf8.RuneCountInString(node.Name) > 253 {
			t.Errorf("node %+v, want %d Pods", node, nodes[node.Name])
		}
	}
	if s.Restarts < 0 || s.Nodes == nil || s.Problems == nil || len(s.Problems) > maxProblems || s.Summary == "" || utf8.RuneCountInString(s.Summary) > 2048 {
		t.Errorf("the status does not fit its schema: %+v", s)
	}
	for _, p := range s.Problems {
		if p.Reason == "" || utf8.RuneCountInString(p.Reason) > 64 || utf8.RuneCountInString(p.Message) > 256 || !utf8.ValidString(p.Reason+p.Message) {
			t.Errorf("problem %+v", p)
		}
	}
}
