// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/managertest"
)

// Any object of the owner chain may come and go.
func TestOwnerChainEnqueuesObject(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		after(1 * time.Second)
		b.Delete(&appsv1.ReplicaSet{ObjectMeta: metadata("web-1")})
		b.wantWrites("none")

		// The Pod of a new ReplicaSet of the Deployment.
		after(1 * time.Second)
		b.web1 = b.replicaSet("web-2")
		b.pod("b", true)
		b.wantWrites("1/1 ready on node-1")

		// Somebody removes the owner reference of the Deployment, and sets it again.
		after(1 * time.Second)
		setOwners := func(owners []metav1.OwnerReference) {
			managertest.Update(b.Env, "default", "web", func(d *appsv1.Deployment) { d.OwnerReferences = owners })
		}
		setOwners(nil)
		b.wantWrites("none")
		after(1 * time.Second)
		setOwners(controlledBy(b.object(), b.kind))
		b.wantWrites("1/1 ready on node-1")
	})
}

func TestOnlyOwnerChangesOfDeploymentsMatter(t *testing.T) {
	deployment := func(uid types.UID, owners ...metav1.OwnerReference) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: uid, OwnerReferences: owners}}
	}
	a, b := metav1.OwnerReference{UID: "a", Controller: ptr.To(true)},
		metav1.OwnerReference{UID: "b", Controller: ptr.To(true)}
	noController := metav1.OwnerReference{UID: "c"}
	for name, test := range map[string]struct {
		before, now *appsv1.Deployment
		want        bool
	}{
		"the same owner":          {deployment("1", a), deployment("1", a), false},
		"no owner":                {deployment("1"), deployment("1", noController), false},
		"another owner":           {deployment("1", a), deployment("1", b), true},
		"an owner":                {deployment("1"), deployment("1", a), true},
		"owner removed":           {deployment("1", a), deployment("1", noController), true},
		"a re-created Deployment": {deployment("1", a), deployment("2", a), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayBeReportedInstead(test.before, test.now); got != test.want {
				t.Errorf("mayBeReportedInstead() = %v, want %v", got, test.want)
			}
		})
	}
}
