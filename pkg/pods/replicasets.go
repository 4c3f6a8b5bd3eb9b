// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
)

// ReplicaSet is what the cache holds for a ReplicaSet.
type ReplicaSet = controller.Record[ReplicaSetFacts]

// ReplicaSetFacts are the identity and the controller of a ReplicaSet.
type ReplicaSetFacts struct {
	uid            packedUID
	controllerName string
	controllerUID  packedUID
}

// FactsOf implements controller.Facts.
func (ReplicaSetFacts) FactsOf(replicaSet *metav1.PartialObjectMetadata) ReplicaSetFacts {
	f := ReplicaSetFacts{uid: pack(replicaSet.UID)}
	f.controllerName, f.controllerUID = controllerOf(replicaSet)
	return f
}
