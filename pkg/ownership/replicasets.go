// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrimReplicaSet is the transform of the informer of ReplicaSets, which reads their
// metadata and selects as that of Pods does: a ReplicaSet has the labels of its Pods. It
// leaves of each no more than its identity and its controller.
func TrimReplicaSet(obj any) (any, error) {
	whole, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	trimmed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: whole.Name, Namespace: whole.Namespace, UID: whole.UID, ResourceVersion: whole.ResourceVersion,
	}}
	if owner := metav1.GetControllerOf(whole); owner != nil {
		trimmed.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return trimmed, nil
}
