// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"
)

// newTypedIndexer returns the indexer of an informer that does not run.
func newTypedIndexer() cache.TypedIndexer[*Record] {
	return cache.NewTypedSharedIndexInformer[*Record](cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, Indexers())).GetTypedIndexer()
}

// fillWithLonePods adds Pods with a ReplicaSet each, and returns the UIDs of the
// ReplicaSets.
func fillWithLonePods(tb testing.TB, indexer cache.Indexer, pods int) []types.UID {
	tb.Helper()
	var owners []types.UID
	for i := range pods {
		owner := uuid.NewUUID()
		pod := newPod(func(pod *corev1.Pod) {
			pod.Name, pod.UID, pod.OwnerReferences[1].UID = fmt.Sprintf("web-%d", i), uuid.NewUUID(), owner
		})
		if err := indexer.Add(New(pod)); err != nil {
			tb.Fatal(err)
		}
		owners = append(owners, owner)
	}
	return owners
}

func TestControlledByWithHashCollisions(t *testing.T) {
	const pods = 5 * Hashes
	indexer := newTypedIndexer()
	for i, owner := range fillWithLonePods(t, indexer, pods) {
		found, err := ControlledBy(indexer, "default", owner)
		if want := fmt.Sprintf("web-%d", i); err != nil || len(found) != 1 || found[0].GetName() != want {
			t.Fatalf("Pods of ReplicaSet %s: %v, %v, want %s", owner, found, err, want)
		}
	}
	entries := indexer.ListIndexFuncValues(byController)
	if len(entries) > Hashes || len(entries) < Hashes/2 {
		t.Errorf("the index has %d entries, want %d or slightly fewer", len(entries), Hashes)
	}
	for _, entry := range entries {
		keys, err := indexer.IndexKeys(byController, entry)
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) > 10*pods/Hashes {
			t.Errorf("an entry has %d Pods, the average is %d", len(keys), pods/Hashes)
		}
	}
}

func TestControlledBy(t *testing.T) {
	indexer := newTypedIndexer()
	add := func(name string, changes ...func(*corev1.Pod)) {
		t.Helper()
		pod := newPod(changes...)
		pod.Name = name
		if err := indexer.Add(New(pod)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(uid types.UID, want int) {
		t.Helper()
		if found, err := ControlledBy(indexer, "default", uid); err != nil || len(found) != want {
			t.Errorf("Pods of %q: %v, %v, want %d", uid, found, err, want)
		}
	}
	orphan := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	add("a")
	add("b")
	add("c", func(pod *corev1.Pod) { pod.OwnerReferences[1].UID = "uid-rs2" })
	add("forged", func(pod *corev1.Pod) { pod.Namespace = "elsewhere" })
	add("no owner", orphan)
	check("uid-rs", 2)
	check("uid-rs2", 1)
	check("uid-rs3", 0)
	check("", 0)
	add("b", orphan) // is released
	check("uid-rs", 1)
	if err := indexer.Delete(New(newPod(func(pod *corev1.Pod) { pod.Name = "a" }))); err != nil {
		t.Fatal(err)
	}
	check("uid-rs", 0)
}
