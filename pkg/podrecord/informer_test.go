// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestTheInformerHoldsRecordsOfPodsThatHaveTheLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(newPod())
		// The fake's watch minds no selector, so what it is asked for is looked at.
		var mutex sync.Mutex
		asked := map[string]labels.Selector{}
		client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mutex.Lock()
			defer mutex.Unlock()
			asked["list"] = action.(clienttesting.ListAction).GetListRestrictions().Labels
			return false, nil, nil
		})
		client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
			mutex.Lock()
			defer mutex.Unlock()
			asked["watch"] = action.(clienttesting.WatchAction).GetWatchRestrictions().Labels
			return false, nil, nil
		})

		factory := kubeinformers.NewSharedInformerFactoryWithOptions(client, 0, kubeinformers.WithTransform(Transform))
		informer := NewInformer(factory)
		if again := NewInformer(factory); again.GetStore() != informer.GetStore() {
			t.Error("a second informer was made")
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer cancel()
		synctest.Wait()

		if held := informer.GetTypedIndexer().List(); len(held) != 1 {
			t.Fatalf("%d objects are held, want 1", len(held))
		}
		if record, ok := informer.GetStore().List()[0].(*Record); !ok || record.Node() != "node-1" {
			t.Errorf("held is %T, want the record of web-1", informer.GetStore().List()[0])
		}
		owned, err := ControlledBy(informer.GetTypedIndexer(), "default", "uid-rs")
		if err != nil || len(owned) != 1 || owned[0].GetName() != "web-1" {
			t.Errorf("of the ReplicaSet are %v, %v, want web-1", owned, err)
		}
		mutex.Lock()
		defer mutex.Unlock()
		if len(asked) == 0 || asked["watch"] == nil {
			t.Fatal("nothing was watched")
		}
		for verb, selector := range asked {
			if selector.String() != "controller" {
				t.Errorf("asked to %s %q, want controller", verb, selector)
			}
		}
	})
}
