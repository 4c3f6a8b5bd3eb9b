// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestReplicaSetsAreSelectedAndTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := replicaSet("web-1", notController(by("Node", "by-the-way")), by("Deployment", "web"))
		stored.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
		stored.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
		stored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}}
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := metadatafake.NewSimpleMetadataClient(scheme, stored)
		selectors := make(chan string, 10)
		client.PrependReactor("list", "replicasets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			selectors <- action.(clienttesting.ListAction).GetListRestrictions().Labels.String()
			return false, nil, nil
		})

		factory := NewMetadataFactory(client, 0)
		informer, err := ReplicaSets(factory)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer cancel()
		synctest.Wait()

		if selector := <-selectors; selector != "controller" {
			t.Errorf("listed are %q, want controller", selector)
		}
		cached, exists, err := informer.GetStore().GetByKey("default/web-1")
		if err != nil || !exists {
			t.Fatalf("GetByKey() = %v, %v, want web-1", exists, err)
		}
		want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", UID: "uid-web-1", ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{by("Deployment", "web")},
		}}
		if diff := cmp.Diff(any(want), cached); diff != "" {
			t.Errorf("unexpected ReplicaSet (-want +got):\n%s", diff)
		}
		if _, err := ReplicaSets(factory); err == nil {
			t.Error("ReplicaSets() after the start = nil error, want one: they would come untrimmed")
		}
	})
}

func TestTrim(t *testing.T) {
	once, err := trim(replicaSet("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	twice, err := trim(once)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("trimmed twice it is another:\n%s", diff)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/web-1"}
	if got, err := trim(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("trim() of a tombstone = %v, %v, want the same", got, err)
	}
}
