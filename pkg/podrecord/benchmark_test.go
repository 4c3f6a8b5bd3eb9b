// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// BenchmarkMemory reports what a cached Pod takes of the live heap, indexes included,
// as B/pod:
//
//	go test -run '^$' -bench Memory -benchtime 1x ./pkg/podrecord
//
// The Pods come from protobuf bytes, as in production: none shares a string with
// another, and of what is not kept nothing must stay behind.
func BenchmarkMemory(b *testing.B) {
	const pods = 20_000
	for _, test := range []struct {
		name      string
		podsOfOne int // of one ReplicaSet
		change    func(*corev1.Pod)
	}{
		{"healthy", 20, func(*corev1.Pod) {}},
		{"healthy, alone", 1, func(*corev1.Pod) {}},
		// The worst: a message of 256 characters, and no two alike.
		{"crashing", 20, crash},
		{"crashing, alone", 1, crash},
	} {
		b.Run(test.name, func(b *testing.B) {
			encoded := encodedPods(b, pods, test.podsOfOne, test.change)
			for b.Loop() {
				indexer := newInformer(fake.NewClientset(), 0).GetIndexer()
				before := liveHeap()
				fill(b, indexer, encoded)
				b.ReportMetric(float64(liveHeap()-before)/pods, "B/pod")
				runtime.KeepAlive(indexer)
			}
			runtime.KeepAlive(encoded)
		})
	}
}

// liveHeap returns how many bytes are reachable. What was interned is let go by one
// collection and swept by the next.
func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func fill(b *testing.B, indexer cache.Indexer, encoded [][]byte) {
	for _, data := range encoded {
		var pod corev1.Pod
		if err := pod.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
		record, err := Transform(&pod)
		if err != nil {
			b.Fatal(err)
		}
		if err := indexer.Add(record); err != nil {
			b.Fatal(err)
		}
	}
}

func encodedPods(b *testing.B, pods, podsOfOne int, change func(*corev1.Pod)) [][]byte {
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
		pod.Spec.Containers = []corev1.Container{{Name: "nginx", Image: "nginx:latest", Env: []corev1.EnvVar{{Name: "FILLER", Value: strings.Repeat("x", 4000)}}}}
		for j := range pod.Status.ContainerStatuses {
			if w := pod.Status.ContainerStatuses[j].State.Waiting; w != nil {
				w.Message = strings.Repeat("m", maxMessage-len(pod.UID)) + string(pod.UID)
			}
		}
		data, err := pod.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		encoded = append(encoded, data)
	}
	return encoded
}

func crash(pod *corev1.Pod) { withContainers(waiting("CrashLoopBackOff", "back-off"))(pod) }
