// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byController is the index of objects by the UID of their controller.
const byController = "controller-uid"

// Object is what is owned.
type Object interface {
	comparable
	metav1.Object
}

// Index indexes the informer's objects by their controller, for [Owned]. It must be
// called before the informer is started; it may be called again.
func Index[T Object](informer cache.TypedSharedIndexInformer[T]) error {
	if _, exists := informer.GetIndexer().GetIndexers()[byController]; exists {
		return nil
	}
	err := informer.AddTypedIndexers(cache.TypedIndexers[T]{byController: func(obj T) ([]string, error) {
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
			return []string{string(owner.UID)}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return fmt.Errorf("indexing by controller: %w", err)
	}
	return nil
}

// Owned returns the objects of an [Index]ed informer in a namespace whose controller
// has the UID. One in another namespace would be somebody's forgery.
func Owned[T Object](objects cache.TypedIndexer[T], namespace string, uid types.UID) ([]T, error) {
	all, err := objects.ByTypedIndex(byController, string(uid))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(obj T) bool { return obj.GetNamespace() != namespace }), nil
}
