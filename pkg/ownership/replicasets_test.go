// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestReplicaSetIsTrimmedToIdentityAndController(t *testing.T) {
	stored := replicaSet("web-1", notController(by("Node", "by-the-way")), by("Deployment", "web"))
	stored.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	stored.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	stored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}}
	once, err := TrimReplicaSet(stored)
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", UID: "uid-web-1", ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{by("Deployment", "web")},
	}}
	if diff := cmp.Diff(any(want), once); diff != "" {
		t.Errorf("unexpected ReplicaSet (-want +got):\n%s", diff)
	}
	twice, err := TrimReplicaSet(once)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("trimming twice changes it:\n%s", diff)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/web-1"}
	if got, err := TrimReplicaSet(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("TrimReplicaSet() of a tombstone = %v, %v, want the same", got, err)
	}
}
