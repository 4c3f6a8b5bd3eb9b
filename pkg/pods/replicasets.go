// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
)

// replicaSetRecord is what the cache holds for a ReplicaSet.
type replicaSetRecord = controller.Record[replicaSetFacts]

// replicaSetFacts are the identity and the controller of a ReplicaSet.
type replicaSetFacts struct {
	uid            packedUID
	controllerName string
	controllerUID  packedUID
}

// FactsOf implements controller.Facts.
func (replicaSetFacts) FactsOf(replicaSet *metav1.PartialObjectMetadata) replicaSetFacts {
	f := replicaSetFacts{uid: pack(replicaSet.UID)}
	f.controllerName, f.controllerUID = controllerOf(replicaSet)
	return f
}
