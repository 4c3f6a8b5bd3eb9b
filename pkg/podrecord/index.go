// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byController is the index of records by a hash of the UID of their [Controller].
const byController = "controller-uid-hash"

// Hashes is how many different hashes there are. An entry of a client-go index takes 300
// bytes for its first Pod, nearly as much as the Pod itself. So ReplicaSets with a Pod
// each share entries, which take 600 kB at most all together. The price is that who reads
// an entry looks at Pods of others: one in so many as there are hashes.
const Hashes = 2048

var seed = maphash.MakeSeed()

// HashOf returns what stands for a UID in an index whose entries are shared.
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
// order. One in another namespace would be somebody's forgery. It passes over one in
// 2,048 of all other records.
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
