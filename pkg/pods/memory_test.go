// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// memoryCases are the measured Pods: with others of the same ReplicaSet or alone, and
// without a problem or with the longest messages, all different.
var memoryCases = []struct {
	name      string
	podsOfOne int // Pods per ReplicaSet
	change    func(*corev1.Pod)
	most      float64 // bytes for each Pod
}{
	{"healthy", 20, func(*corev1.Pod) {}, 400},
	{"healthy, alone", 1, func(*corev1.Pod) {}, 400},
	{"crashing", 20, crash, 750},
	{"crashing, alone", 1, crash, 750},
}

// BenchmarkMemory reports the live heap per cached Pod, with its indexes, as B/pod:
//
//	go test -run '^$' -bench Memory -benchtime 1x ./pkg/pods
func BenchmarkMemory(b *testing.B) {
	for _, test := range memoryCases {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(memoryOfOne(b, test.podsOfOne, test.change), "B/pod")
			}
		})
	}
}

func TestMemoryOfPods(t *testing.T) {
	for _, test := range memoryCases {
		t.Run(test.name, func(t *testing.T) {
			if got := memoryOfOne(t, test.podsOfOne, test.change); got > test.most {
				t.Errorf("a Pod takes %.0f bytes, want at most %.0f", got, test.most)
			}
		})
	}
}

// memoryOfOne returns the live heap in bytes per Pod, for many Pods. They are decoded from
// protobuf, as in production, so that they share no strings. Nothing of the dropped parts
// may stay on the heap.
func memoryOfOne(tb testing.TB, podsOfOne int, change func(*corev1.Pod)) float64 {
	const pods = 20_000
	encoded := encodedPods(tb, pods, podsOfOne, change)
	indexer := newIndexer(podHashes)
	before := liveHeap()
	fill(tb, indexer, encoded)
	taken := liveHeap() - before
	runtime.KeepAlive(indexer)
	runtime.KeepAlive(encoded)
	return float64(taken) / pods
}

// liveHeap returns the number of reachable bytes. Interned values are released by one
// collection and swept by the next.
func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// newIndexer returns the indexer of a cache of records with the index of a [Chain].
func newIndexer[R comparable](hashes func(*controller.Record[R]) []string) cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byController: func(obj any) ([]string, error) {
		return hashes(obj.(*controller.Record[R])), nil
	}})
}

func fill(tb testing.TB, indexer cache.Indexer, encoded [][]byte) {
	for _, data := range encoded {
		var pod corev1.Pod
		if err := pod.Unmarshal(data); err != nil {
			tb.Fatal(err)
		}
		if err := indexer.Add(newRecord(&pod)); err != nil {
			tb.Fatal(err)
		}
	}
}

func encodedPods(tb testing.TB, pods, podsOfOne int, change func(*corev1.Pod)) [][]byte {
	var encoded [][]byte
	var owner types.UID
	for i := range pods {
		if i%podsOfOne == 0 {
			owner = uuid.NewUUID()
		}
		web := fmt.Sprintf("example-icecream-%d-6d4cf56db6", i/podsOfOne)
		pod := newPod(change)
		pod.Namespace = fmt.Sprintf("team-%d", i%50)
		pod.Name = fmt.Sprintf("%s-%05x", web, i)
		pod.UID = uuid.NewUUID()
		pod.ResourceVersion = fmt.Sprint(10_000_000 + i)
		pod.OwnerReferences[1].Name, pod.OwnerReferences[1].UID = web, owner
		pod.Spec.NodeName = fmt.Sprintf("node-%d.example.com", i%500)
		pod.Spec.Containers = []corev1.Container{{Name: "nginx", Image: "nginx:latest",
			Env: []corev1.EnvVar{{Name: "FILLER", Value: strings.Repeat("x", 1000)}}}}
		for j := range pod.Status.ContainerStatuses {
			if w := pod.Status.ContainerStatuses[j].State.Waiting; w != nil {
				w.Message = strings.Repeat("m", maxMessage-len(pod.UID)) + string(pod.UID)
			}
		}
		data, err := pod.Marshal()
		if err != nil {
			tb.Fatal(err)
		}
		encoded = append(encoded, data)
	}
	return encoded
}

func crash(pod *corev1.Pod) { withContainers(waiting("CrashLoopBackOff", "back-off"))(pod) }

// BenchmarkMemoryOfReplicaSets reports the live heap per cached ReplicaSet, with its index. A Deployment has
// one of them, or ten, as after ten rollouts.
func BenchmarkMemoryOfReplicaSets(b *testing.B) {
	const replicaSets = 20_000
	for name, ofOne := range map[string]int{"after one rollout": 1, "after ten rollouts": 10} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				indexer := newIndexer(replicaSetHashes)
				before := liveHeap()
				var owner types.UID
				for i := range replicaSets {
					if i%ofOne == 0 {
						owner = uuid.NewUUID()
					}
					web := fmt.Sprintf("example-icecream-%d", i/ofOne)
					rs := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
						Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("%s-%010x", web, i), UID: uuid.NewUUID(),
						ResourceVersion: fmt.Sprint(10_000_000 + i),
						OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: web, UID: owner, Controller: new(true)}},
					}}
					if err := indexer.Add(controller.NewRecord[replicaSetFacts](rs)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(liveHeap()-before)/replicaSets, "B/replicaset")
				runtime.KeepAlive(indexer)
			}
		})
	}
}
