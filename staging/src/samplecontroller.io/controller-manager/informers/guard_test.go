// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/tolerant"
)

// isOdd reports whether obj is the object that functions of the tests panic on. A
// placeholder has lost its data.
func isOdd(obj any) bool {
	configMap, ok := obj.(*corev1.ConfigMap)
	return ok && configMap.Data["odd"] != ""
}

func TestPanicOfProgramStopsOnlyItsObject(t *testing.T) {
	panics := func(obj any) (any, error) {
		if isOdd(obj) {
			panic("odd object")
		}
		return obj, nil
	}
	dropsAnnotations := func(obj any) (any, error) {
		obj.(*corev1.ConfigMap).Annotations = nil
		return panics(obj)
	}
	index := func(obj any) ([]string, error) {
		if isOdd(obj) {
			panic("odd object")
		}
		return []string{"all"}, nil
	}
	for name, tc := range map[string]struct {
		options     []Option
		later       cache.Indexers
		want        string
		indexed     int
		placeholder bool
	}{
		"transform": {[]Option{WithTransform(panics), WithIndexers(cache.Indexers{"index": index})}, nil, "transform fails for configmaps default/odd: panic: odd object", 2, true},
		"transform without annotations": {
			[]Option{WithTransform(dropsAnnotations), WithIndexers(cache.Indexers{"index": index})}, nil, "transform fails for configmaps default/odd: panic: odd object", 2, true,
		},
		"index":       {[]Option{WithIndexers(cache.Indexers{"index": index})}, nil, "index index fails for configmaps default/odd: panic: odd object", 1, false},
		"later index": {nil, cache.Indexers{"index": index}, "index index fails for configmaps default/odd: panic: odd object", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.sendBookmarks()
				server := b.configMapServer
				server.create("good", "1")
				server.data = map[string]string{"odd": "yes"}
				server.create("odd", "2")
				informer := b.configMaps(tc.options...)
				if err := informer.AddIndexers(tc.later); err != nil {
					b.Fatal(err)
				}
				b.factory.Start(b.ctx)
				time.Sleep(2 * time.Minute)
				if err, _ := b.factory.Served(informer.GetStore()); err != nil {
					b.Errorf("Served: %v, want none", err)
				}
				if objects, err := informer.GetIndexer().ByIndex("index", "all"); err != nil || len(objects) != tc.indexed {
					b.Errorf("indexed: %d objects, %v, want %d", len(objects), err, tc.indexed)
				}
				obj, _, _ := informer.GetStore().GetByKey("default/odd")
				if err := tolerant.DecodeError(obj.(*corev1.ConfigMap)); (err != nil) != tc.placeholder {
					b.Errorf("decode error %v, want one: %t", err, tc.placeholder)
				}
				failure := b.factory.Resources()[0].Failure
				for check, err := range map[string]error{"failure": failure, "CheckWatches": b.factory.CheckWatches()} {
					if err == nil || !strings.Contains(err.Error(), tc.want) {
						b.Errorf("%s: %v, want %s", check, err, tc.want)
					}
				}
				if got := b.factory.Stale(); len(got) > 0 {
					b.Errorf("Stale: %q, want none, because the cache follows", got)
				}

				server.set(func(s *apiServer) { s.data = nil })
				server.create("odd", "2")
				synctest.Wait()
				if err := b.factory.CheckWatches(); err != nil {
					b.Errorf("CheckWatches once the object is repaired: %v", err)
				}
			})
		})
	}
}

func TestTransformThatAlwaysPanics(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		informer := b.configMaps(WithTransform(func(any) (any, error) { panic("any object") }))
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		if r := b.factory.Resources()[0]; !r.Served || r.Failure == nil || !strings.Contains(r.Failure.Error(), "any object") {
			b.Errorf("served: %t, failure %v", r.Served, r.Failure)
		}
		obj, exists, _ := informer.GetStore().GetByKey("default/a")
		if !exists || tolerant.DecodeError(obj.(*corev1.ConfigMap)) == nil {
			b.Errorf("cached: %v, want a placeholder", obj)
		}
	})
}

func TestDeletedOddObjectIsForgotten(t *testing.T) {
	g := guard{failures: map[call]error{}}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	odd := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "odd"}}
	if err := store.Add(odd); err != nil {
		t.Fatal(err)
	}
	_ = g.run("transform", odd, func() error { panic("odd object") })
	if g.check(store) == nil {
		t.Error("not reported")
	}
	if err := store.Delete(odd); err != nil {
		t.Fatal(err)
	}
	if err := g.check(store); err != nil || len(g.failures) > 0 {
		t.Errorf("reported after its deletion: %v", err)
	}
}
