// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// byController indexes objects by a hash of their controller's UID. The entries of an index
// are expensive, as for Pods, and most controllers own just one of these objects.
const byController = "controller-uid-hash"

// Object is an object with a controller owner.
type Object interface {
	comparable
	metav1.Object
}

// Index indexes the informer's objects by their controller, for [Owned]. It must be called
// before the informer is started. It is idempotent.
func Index[T Object](informer cache.TypedSharedIndexInformer[T]) error {
	if _, exists := informer.GetIndexer().GetIndexers()[byController]; exists {
		return nil
	}
	err := informer.AddTypedIndexers(cache.TypedIndexers[T]{byController: func(obj T) ([]string, error) {
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
			return []string{podrecord.HashOf(owner.UID)}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return fmt.Errorf("indexing by controller: %w", err)
	}
	return nil
}

// Owned returns the objects in a namespace whose controller has the UID, from an [Index]ed
// informer. An owner reference in another namespace would be forged. Owned filters out
// about one in 2,048 of all other objects.
func Owned[T Object](objects cache.TypedIndexer[T], namespace string, uid types.UID) ([]T, error) {
	all, err := objects.ByTypedIndex(byController, podrecord.HashOf(uid))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(obj T) bool {
		owner := metav1.GetControllerOfNoCopy(obj)
		return obj.GetNamespace() != namespace || owner == nil || owner.UID != uid
	}), nil
}
