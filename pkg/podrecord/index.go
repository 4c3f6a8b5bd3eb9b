// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byController indexes records by a hash of the UID of their [Controller].
const byController = "controller-uid-hash"

// Hashes is the number of different hashes. An index entry in client-go takes 300 bytes for
// its first Pod, nearly as much as the Pod itself. So ReplicaSets share entries, which take
// at most 600 kB in total. In return, a lookup must filter out the Pods of others: one in
// Hashes of all Pods.
const Hashes = 2048

var seed = maphash.MakeSeed()

// HashOf returns the key of a UID in an index with shared entries.
func HashOf[T ~string](uid T) string {
	return string(rune(maphash.String(seed, string(uid)) % Hashes))
}

func controllerHash(obj any) ([]string, error) {
	if uid := obj.(*Record).controllerUID; uid != "" {
		return []string{HashOf(uid)}, nil
	}
	return nil, nil
}

// ControlledBy returns the records in a namespace whose controller has the UID, in no
// order. An owner reference in another namespace would be forged. ControlledBy filters out
// about one in 2,048 of all other records.
func ControlledBy(pods cache.TypedIndexer[*Record], namespace string, uid types.UID) ([]*Record, error) {
	packed := pack(uid)
	found, err := pods.ByTypedIndex(byController, HashOf(packed))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r *Record) bool {
		return r.controllerUID != packed || r.GetNamespace() != namespace
	}), nil
}
