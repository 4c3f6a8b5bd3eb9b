// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"hash/maphash"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/controller"
)

// byController is the name of the indexes by a hash of the UID of an object's controller. All controllers of
// the program share them.
const byController = "controller-uid-hash"

// hashes is the number of different hashes. An index entry in client-go takes 300 bytes for
// its first Pod, nearly as much as the Pod itself. So ReplicaSets share entries, which take
// at most 600 kB in total. In return, a lookup must filter out the Pods of others: one in
// hashes of all Pods.
const hashes = 2048

var seed = maphash.MakeSeed()

// hashOf returns the key of a UID in an index with shared entries.
func hashOf(uid packedUID) string {
	return string(rune(maphash.String(seed, string(uid)) % hashes))
}

func hashesOf(uid packedUID) []string {
	if uid == "" {
		return nil
	}
	return []string{hashOf(uid)}
}

// The indexes that a [Chain] reads.
var (
	podIndex        = controller.SharedIndex(byController, podHashes)
	replicaSetIndex = controller.SharedIndex(byController, replicaSetHashes)
)

func podHashes(r *Record) []string { return hashesOf(r.Facts().controllerUID) }

func replicaSetHashes(r *replicaSetRecord) []string { return hashesOf(r.Facts().controllerUID) }

// DeploymentIndex returns the option that a reader of Deployments needs for [DeploymentsOf].
func DeploymentIndex() controller.Option {
	return controller.SharedIndex(byController, func(d *appsv1.Deployment) []string {
		_, uid := controllerOf(d)
		return hashesOf(uid)
	})
}

// DeploymentsOf returns copies of the cached Deployments in the namespace whose controller has the given
// UID, in no order. It panics if deployments lacks the [DeploymentIndex].
func DeploymentsOf(deployments *controller.Reader[*appsv1.Deployment], namespace string,
	uid types.UID) []*appsv1.Deployment {
	return deployments.Find(byController, hashOf(pack(uid)), func(d *appsv1.Deployment) bool {
		owner := metav1.GetControllerOfNoCopy(d)
		return d.Namespace == namespace && owner != nil && owner.UID == uid
	})
}

func (f Facts) controlledBy(uid packedUID) bool { return f.controllerUID == uid }

func (f replicaSetFacts) controlledBy(uid packedUID) bool { return f.controllerUID == uid }

// controlledBy returns the records in a namespace whose controller has the UID, in no
// order. An owner reference in another namespace would be forged.
func controlledBy[R comparable](
	records *controller.Reader[*controller.Record[R]], namespace string, uid packedUID, is func(R, packedUID) bool,
) []*controller.Record[R] {
	return records.Find(byController, hashOf(uid), func(r *controller.Record[R]) bool {
		return r.GetNamespace() == namespace && is(r.Facts(), uid)
	})
}
