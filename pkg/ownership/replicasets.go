// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrimReplicaSet is the transform of the informer of ReplicaSets, which reads only their
// metadata. That informer uses the same selector as that of Pods, since a ReplicaSet has
// the labels of its Pods. TrimReplicaSet keeps only the identity and the controller.
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
