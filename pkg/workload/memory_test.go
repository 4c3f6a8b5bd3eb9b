// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// BenchmarkMemory reports the live heap per cached object, with the indexes that every
// informer has, as B/object:
//
//	go test -run '^$' -bench Memory -benchtime 1x ./pkg/workload
//
// The objects are those of manifests/examples as an API server returned them, with what the transforms leave.
// For Pods and ReplicaSets see the benchmark of pkg/pods.
func BenchmarkMemory(b *testing.B) {
	trim := func(d *appsv1.Deployment) { trim(d, sets.New(samplev1alpha1.GroupName)) }
	b.Run("foo", func(b *testing.B) { benchmarkMemory(b, "foo", drop[*samplev1alpha1.Foo]) })
	b.Run("icecream", func(b *testing.B) { benchmarkMemory(b, "icecream", drop[*icecreamv1alpha1.Icecream]) })
	b.Run("deployment", func(b *testing.B) { benchmarkMemory(b, "deployment", trim) })
	b.Run("foreign deployment", func(b *testing.B) {
		benchmarkMemory(b, "deployment", func(d *appsv1.Deployment) {
			d.OwnerReferences, d.Spec.Selector.MatchLabels = nil, map[string]string{"app": "other"}
			trim(d)
		})
	})
}

// drop is what the transforms of Foos and Icecreams remove.
func drop[T metav1.Object](object T) {
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
}

func benchmarkMemory[T any, P interface {
	*T
	metav1.Object
}](b *testing.B, name string, transform func(P)) {
	const objects = 20_000
	encoded, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		before := liveHeap()
		for i := range objects {
			object := P(new(T))
			if err := json.Unmarshal(encoded, object); err != nil {
				b.Fatal(err)
			}
			object.SetNamespace(fmt.Sprintf("team-%d", i%50))
			object.SetName(fmt.Sprintf("%s-%d", object.GetName(), i))
			object.SetUID(types.UID(uuid.NewUUID()))
			transform(object)
			if err := indexer.Add(object); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(liveHeap()-before)/objects, "B/object")
		runtime.KeepAlive(indexer)
	}
}

// liveHeap returns the number of reachable bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // sweeps what the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
