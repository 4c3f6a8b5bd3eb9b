// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestCallersShareOneInformer(t *testing.T) {
	inBubble(t, func(b *bubble) {
		if one, other := b.configMaps(), b.configMaps(); one != other {
			b.Error("two informers of one resource")
		}
		if b.configMaps().GetStore() == b.secrets().GetStore() {
			b.Error("one informer of two resources")
		}
	})
}

func TestFactoryOptionsApplyFirst(t *testing.T) {
	inBubble(t, func(b *bubble) {
		mark := func(uid types.UID) cache.TransformFunc {
			return func(obj any) (any, error) {
				object := obj.(*corev1.ConfigMap)
				object.UID = uid
				metav1.SetMetaDataLabel(&object.ObjectMeta, strings.ReplaceAll(string(uid), " ", "-"), "yes")
				return obj, nil
			}
		}
		b.factory.defaults = []Option{WithSelector("a=b"), WithTransform(mark("the factory"))}
		b.configMapServer.create("a", "1")
		b.secretServer.create("a", "1")
		index := func(any) ([]string, error) { return []string{"all"}, nil }
		configMaps := b.configMaps(WithTransform(mark("the caller")), WithIndexers(cache.Indexers{"index": index}))
		secrets := b.secrets()
		b.factory.Start(b.ctx)
		b.waitForSync()
		synctest.Wait()
		if got := held(configMaps)["a"]; got != "the caller" {
			b.Errorf("the transform is from %s", got)
		}
		object, _, _ := configMaps.GetStore().GetByKey("default/a")
		if diff := cmp.Diff(map[string]string{"the-factory": "yes", "the-caller": "yes"}, object.(*corev1.ConfigMap).Labels); diff != "" {
			b.Errorf("transforms (-want +got):\n%s", diff)
		}
		if got := held(secrets)["a"]; got != "the factory" {
			b.Errorf("the transform is from %s", got)
		}
		if diff := cmp.Diff(map[string]bool{"a=b": true}, b.configMapServer.selected); diff != "" {
			b.Errorf("label selectors (-want +got):\n%s", diff)
		}
		if objects, err := configMaps.GetIndexer().ByIndex("index", "all"); err != nil || len(objects) != 1 {
			b.Errorf("by the given index: %v, %v", objects, err)
		}
		if configMaps.GetIndexer().GetIndexers()[cache.NamespaceIndex] != nil {
			b.Error("the index by namespace exists although others replace it")
		}
		if objects, err := secrets.GetIndexer().ByIndex(cache.NamespaceIndex, "default"); err != nil || len(objects) != 1 {
			b.Errorf("by namespace: %v, %v", objects, err)
		}
	})
}

func TestConflictingInformerForPanics(t *testing.T) {
	for name, ask := range map[string]func(b *bubble){
		"another type": func(b *bubble) {
			InformerFor[*metav1.PartialObjectMetadata](b.factory, configMaps, b.configMapServer,
				WithTransform(func(obj any) (any, error) { return obj, nil }))
		},
		"another version": func(b *bubble) {
			InformerFor[*corev1.ConfigMap](b.factory, schema.GroupVersionResource{Version: "v2", Resource: "configmaps"}, b.configMapServer)
		},
		"no transform": func(b *bubble) {
			transform := WithTransform(func(obj any) (any, error) { return obj, nil })
			InformerFor[*corev1.ConfigMap](b.factory, secrets, b.secretServer, transform)
			b.secrets()
		},
		"another selector":          func(b *bubble) { b.configMaps(WithSelector("a=b")) },
		"type not listed by source": func(b *bubble) { InformerFor[*corev1.Secret](b.factory, secrets, b.secretServer) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.configMaps()
				defer func() {
					if got := fmt.Sprint(recover()); got == "<nil>" || strings.Contains(got, "runtime error") {
						b.Errorf("panic: %s, want a message", got)
					}
				}()
				ask(b)
			})
		})
	}
}

// The clients of client-go implement the source interface.
var _ = func(f *Factory, c kubernetes.Interface, m metadata.Interface, d dynamic.Interface) {
	InformerFor[*corev1.ConfigMap](f, configMaps, c.CoreV1().ConfigMaps(""))
	InformerFor[*metav1.PartialObjectMetadata](f, configMaps, m.Resource(configMaps))
	InformerFor[*unstructured.Unstructured](f, configMaps, d.Resource(configMaps))
}

func TestFakeClientsetsAreListed(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "1"}})
		factory := NewFactory()
		informer := InformerFor[*corev1.ConfigMap](factory, configMaps, client.CoreV1().ConfigMaps(""))
		factory.Start(t.Context())
		defer factory.Shutdown()
		time.Sleep(time.Second)
		if err, _ := factory.Served(informer.GetStore()); err != nil {
			t.Errorf("Served: %v", err)
		}
		if diff := cmp.Diff(map[string]types.UID{"a": "1"}, held(informer)); diff != "" {
			t.Errorf("in the cache (-want +got):\n%s", diff)
		}
	})
}

func TestServedReturnsWorstReason(t *testing.T) {
	inBubble(t, func(b *bubble) {
		others := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "others"}
		other := InformerFor[*corev1.ConfigMap](b.factory, others, &apiServer{err: errors.New("connection refused")}).GetStore()
		b.configMapServer.err, b.secretServer.err = notFound, forbidden
		configMaps, secrets := b.configMaps().GetStore(), b.secrets().GetStore()
		stranger := cache.NewStore(cache.MetaNamespaceKeyFunc)
		b.factory.Start(b.ctx)
		time.Sleep(time.Second)
		for _, tc := range []struct {
			want   error
			stores []cache.Store
		}{
			{nil, nil},
			{nil, []cache.Store{stranger}},
			{ErrNotSynced, []cache.Store{other, stranger}},
			{notFound, []cache.Store{other, configMaps}},
			{forbidden, []cache.Store{other, configMaps, secrets}},
			{forbidden, []cache.Store{secrets, configMaps, other}},
		} {
			if err, _ := b.factory.Served(tc.stores...); !errors.Is(err, tc.want) {
				b.Errorf("Served: %v, want %v", err, tc.want)
			}
		}
	})
}

func TestResourceState(t *testing.T) {
	inBubble(t, func(b *bubble) {
		begin := time.Now()
		b.secretServer.err = notFound
		b.configMapServer.create("a", "1")
		b.configMaps()
		b.secrets()
		registry := metrics.NewKubeRegistry()
		m := NewMetrics("test", registry.CustomMustRegister)
		if families, err := registry.Gather(); len(families) > 0 || err != nil {
			b.Errorf("metrics without a factory: %v, %v", families, err)
		}
		expect := func(when string, want []Resource, ages, objects [2]int) {
			b.Helper()
			// Errors are compared by Served, times only to the second.
			got := b.factory.Resources()
			var served [2]int
			for i := range got {
				if want[i].Served {
					served[i] = 1
				}
				if (got[i].Err == nil) != (want[i].Err == nil) {
					b.Errorf("%s %s: %v, want %v", got[i].Name(), when, got[i].Err, want[i].Err)
				}
				got[i].Err, want[i].Err = nil, nil
				got[i].Since = got[i].Since.Truncate(time.Second)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				b.Errorf("resources %s (-want +got):\n%s", when, diff)
			}
			text := fmt.Sprintf(`# HELP test_informer_failing [ALPHA] 1 if the last list or watch of a resource failed and none has succeeded since, 0 otherwise. An API that is not installed and a missing permission are not failures: see resource_served.
# TYPE test_informer_failing gauge
test_informer_failing{resource="configmaps"} 0
test_informer_failing{resource="secrets"} 0
# HELP test_informer_objects [ALPHA] Number of objects of a resource in the cache.
# TYPE test_informer_objects gauge
test_informer_objects{resource="configmaps"} %d
test_informer_objects{resource="secrets"} %d
# HELP test_resource_served [ALPHA] 1 if the cache holds what the API server serves of a resource. 0 if the API is absent, permission to read is missing, or the cache has not synced.
# TYPE test_resource_served gauge
test_resource_served{resource="configmaps"} %d
test_resource_served{resource="secrets"} %d
# HELP test_watch_age_seconds [ALPHA] Seconds since the last event or bookmark on the watch for a resource, or since startup if there was none. Bookmarks arrive about once a minute.
# TYPE test_watch_age_seconds gauge
test_watch_age_seconds{resource="configmaps"} %d
test_watch_age_seconds{resource="secrets"} %d
`, objects[0], objects[1], served[0], served[1], ages[0], ages[1])
			if err := testutil.GatherAndCompare(registry, strings.NewReader(text)); err != nil {
				b.Errorf("metrics %s: %v", when, err)
			}
		}
		m.Watch(NewFactory()) // a manager that ran earlier in the same process
		m.Watch(b.factory)
		expect("at first", []Resource{
			{Resource: configMaps, Err: ErrNotSynced, Since: begin}, {Resource: secrets, Err: ErrNotSynced, Since: begin},
		}, [2]int{}, [2]int{})

		time.Sleep(10 * time.Second)
		b.factory.Start(b.ctx)
		time.Sleep(20 * time.Second)
		started := begin.Add(10 * time.Second)
		expect("when one is served", []Resource{
			{Resource: configMaps, Served: true, Since: started, Objects: 1, LastSign: started},
			{Resource: secrets, Err: notFound, Since: started},
		}, [2]int{20, 30}, [2]int{1, 0})

		b.configMapServer.create("b", "2")
		event := time.Now()
		time.Sleep(30 * time.Second)
		b.configMapServer.answer(notFound)
		b.configMapServer.close()
		time.Sleep(10 * time.Second)
		expect("when it has gone", []Resource{
			{Resource: configMaps, Err: notFound, Since: event.Add(30 * time.Second), Objects: 2, LastSign: event},
			{Resource: secrets, Err: notFound, Since: started},
		}, [2]int{40, 70}, [2]int{2, 0})
		if diff := cmp.Diff(map[cache.ObjectName]string{{Namespace: "default", Name: "a"}: "2", {Namespace: "default", Name: "b"}: "3"},
			b.factory.versions(configMaps)); diff != "" {
			b.Errorf("cached versions (-want +got):\n%s", diff)
		}
	})
}
