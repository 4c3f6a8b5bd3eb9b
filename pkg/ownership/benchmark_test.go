// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"
)

// BenchmarkMemory reports the live heap per cached ReplicaSet, with its indexes, as
// B/replicaset:
//
//	go test -run '^$' -bench Memory -benchtime 1x ./pkg/ownership
//
// They are decoded from protobuf, as in production. A Deployment has one of them, or ten,
// as after ten rollouts.
func BenchmarkMemory(b *testing.B) {
	const replicaSets = 20_000
	for _, test := range []struct {
		name  string
		ofOne int // per Deployment
	}{
		{"after ten rollouts", 10},
		{"after one rollout", 1},
	} {
		b.Run(test.name, func(b *testing.B) {
			encoded := encodedReplicaSets(b, replicaSets, test.ofOne)
			for b.Loop() {
				indexer := newIndexer(b)
				before := liveHeap()
				for _, data := range encoded {
					var whole metav1.PartialObjectMetadata
					if err := whole.Unmarshal(data); err != nil {
						b.Fatal(err)
					}
					trimmed, err := TrimReplicaSet(&whole)
					if err != nil {
						b.Fatal(err)
					}
					if err := indexer.Add(trimmed); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(liveHeap()-before)/replicaSets, "B/replicaset")
				runtime.KeepAlive(indexer)
			}
			runtime.KeepAlive(encoded)
		})
	}
}

// newIndexer returns the informer's indexer, with the chain's index.
func newIndexer(b *testing.B) cache.Indexer {
	informers := idleInformers()
	if _, err := NewChain(informers); err != nil {
		b.Fatal(err)
	}
	return informers.ReplicaSets.GetIndexer()
}

// liveHeap returns the number of reachable bytes.
func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func encodedReplicaSets(b *testing.B, n, ofOne int) [][]byte {
	var encoded [][]byte
	var owner metav1.OwnerReference
	for i := range n {
		if i%ofOne == 0 {
			owner = *metav1.NewControllerRef(
				&metav1.ObjectMeta{Name: fmt.Sprintf("example-icecream-%d", i/ofOne), UID: uuid.NewUUID()},
				appsv1.SchemeGroupVersion.WithKind("Deployment"))
		}
		rs := replicaSet(fmt.Sprintf("%s-%010x", owner.Name, i), owner)
		rs.Namespace, rs.UID, rs.ResourceVersion = fmt.Sprintf("team-%d", i%50), uuid.NewUUID(), fmt.Sprint(10_000_000+i)
		rs.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(i % ofOne)}
		rs.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
		data, err := rs.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		encoded = append(encoded, data)
	}
	return encoded
}
