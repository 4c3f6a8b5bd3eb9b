// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/informers"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// The cache has the compared fields only for Deployments of the kinds that the program runs
// controllers for.
func TestDeploymentsOfServedKindsAreCached(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false) // the fakes have none
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "sundaes.example.com/v1", Kind: "Sundae", Controller: ptr.To(true)}}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
		Status:     appsv1.DeploymentStatus{Replicas: 2},
	}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "nginx", Image: "nginx:1.29"}}
	for name, test := range map[string]struct {
		group string
		want  *appsv1.Deployment
	}{
		"served":     {"sundaes.example.com", deployment},
		"not served": {"samplecontroller.k8s.io", &appsv1.Deployment{ObjectMeta: deployment.ObjectMeta}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handle := informers.NewFactory()
				informer := deployments(handle, kubefake.NewClientset(deployment.DeepCopy()).AppsV1().Deployments(""), sets.New(test.group))
				handle.Start(t.Context())
				defer handle.Shutdown()
				synctest.Wait()
				if diff := cmp.Diff([]any{test.want}, informer.GetStore().List()); diff != "" {
					t.Errorf("unexpected cache content (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPodsAndReplicaSetsAreSelectedAndTrimmed(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	synctest.Test(t, func(t *testing.T) {
		owned := func(kind string) metav1.ObjectMeta {
			return metav1.ObjectMeta{
				Namespace: "default", Name: "web-1", UID: "uid-web-1", ResourceVersion: "7",
				Labels: map[string]string{"controller": "web"}, Annotations: map[string]string{"of": "others"},
				OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "web", Controller: ptr.To(true), UID: types.UID("uid-" + kind)}},
			}
		}
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		kube := kubefake.NewClientset(&corev1.Pod{ObjectMeta: owned("ReplicaSet"), Spec: corev1.PodSpec{NodeName: "node-1"}})
		metadata := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: owned("Deployment"),
		})
		// The watches of the fakes ignore selectors, so the requests are checked.
		var mutex sync.Mutex
		asked := map[string]string{}
		for _, fake := range []*clienttesting.Fake{&kube.Fake, &metadata.Fake} {
			fake.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				mutex.Lock()
				defer mutex.Unlock()
				asked["list "+action.GetResource().Resource] = action.(clienttesting.ListAction).GetListRestrictions().Labels.String()
				return false, nil, nil
			})
			fake.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
				mutex.Lock()
				defer mutex.Unlock()
				asked["watch "+action.GetResource().Resource] = action.(clienttesting.WatchAction).GetWatchRestrictions().Labels.String()
				return false, nil, nil
			})
		}

		handle := informers.NewFactory()
		chain := chain(handle, kube.CoreV1().Pods(""), metadata.Resource(replicaSetResource),
			deployments(handle, kube.AppsV1().Deployments(""), sets.New[string]()))
		handle.Start(t.Context())
		defer handle.Shutdown()
		synctest.Wait()

		for _, store := range []interface{ ListKeys() []string }{chain.Pods.GetStore(), chain.ReplicaSets.GetStore()} {
			if diff := cmp.Diff([]string{"default/web-1"}, store.ListKeys()); diff != "" {
				t.Fatalf("unexpected cache content (-want +got):\n%s", diff)
			}
		}
		if record, ok := chain.Pods.GetStore().List()[0].(*podrecord.Record); !ok || record.Node() != "node-1" {
			t.Errorf("the cache has a %T, want the Pod's record", chain.Pods.GetStore().List()[0])
		}
		ofReplicaSet, err := podrecord.ControlledBy(chain.Pods.GetTypedIndexer(), "default", "uid-ReplicaSet")
		if err != nil || len(ofReplicaSet) != 1 {
			t.Errorf("Pods of the ReplicaSet: %v, %v, want web-1", ofReplicaSet, err)
		}
		whole := owned("Deployment")
		want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: whole.Namespace, Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion, OwnerReferences: whole.OwnerReferences,
		}}
		if diff := cmp.Diff(any(want), chain.ReplicaSets.GetStore().List()[0]); diff != "" {
			t.Errorf("unexpected ReplicaSet (-want +got):\n%s", diff)
		}
		mutex.Lock()
		defer mutex.Unlock()
		if diff := cmp.Diff(map[string]string{
			"list pods": "controller", "watch pods": "controller",
			"list replicasets": "controller", "watch replicasets": "controller",
			"list deployments": "", "watch deployments": "", // foreign ones matter, too
		}, asked); diff != "" {
			t.Errorf("label selectors (-want +got):\n%s", diff)
		}
	})
}
