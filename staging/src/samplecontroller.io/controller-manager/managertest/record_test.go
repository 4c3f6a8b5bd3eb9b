// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// placement has the facts about a Pod.
type placement struct {
	node  unique.Handle[string]
	color string
}

// FactsOf implements controller.Facts.
func (placement) FactsOf(p *corev1.Pod) placement {
	if p.Labels["color"] == "odd" {
		panic("an odd color")
	}
	return placement{unique.Make(p.Spec.NodeName), strings.Clone(p.Labels["color"])}
}

// size is another fact about a Pod.
type size int

// FactsOf implements controller.Facts.
func (size) FactsOf(p *corev1.Pod) size { return size(len(p.Spec.Containers)) }

// widgetColor is the color of a Widget.
type widgetColor string

// FactsOf implements controller.Facts.
func (widgetColor) FactsOf(w *Widget) widgetColor { return widgetColor(w.Labels["color"]) }

// metadataColor is the color of any object.
type metadataColor string

// FactsOf implements controller.Facts.
func (metadataColor) FactsOf(o *metav1.PartialObjectMetadata) metadataColor {
	return metadataColor(o.Labels["color"])
}

type podRecord = controller.Record[placement]

func nodeKey(p *podRecord) []cache.ObjectName {
	return []cache.ObjectName{cache.NewObjectName(p.GetNamespace(), p.Facts().node.Value())}
}

// TestCompactRecords has two controllers that read records of Pods. The first one notes the Pods of each
// node and their colors in an annotation of a ConfigMap with the name of the node.
func TestCompactRecords(t *testing.T) {
	const ns = "compact-records"
	var calls, others atomic.Int32
	byNode := controller.SharedIndex("node", func(p *podRecord) []string { return []string{p.Facts().node.Value()} })
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		nodes := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"), controller.MayPatch())
		pods := controller.WatchAs(nodes, nodeKey, byNode)
		return nodes.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			calls.Add(1)
			node, ok := r.Object()
			if !ok {
				return nil
			}
			var names []string
			for _, pod := range pods.ByIndex("node", node.Name) {
				names = append(names, pod.GetName()+pod.Facts().color)
			}
			slices.Sort(names)
			node.Annotations = map[string]string{"pods": strings.Join(names, " ")}
			isA := func(p *podRecord) bool { return p.GetName() == "a" }
			if _, ok := pods.Get(node.Namespace, "a"); ok != slices.ContainsFunc(pods.List(node.Namespace), isA) ||
				len(pods.List("other")) > 0 {
				t.Errorf("the reader has the Pods %v, and a: %v", pods.List(""), ok)
			}
			return r.Patch(ctx, node)
		})
	})
	p.Controllers = append(p.Controllers, controller.Descriptor{
		Name: "another-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			nodes := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"))
			pods := controller.WatchAs(nodes, nodeKey, byNode)
			return nodes.Reconcile(func(_ context.Context, r *controller.Request[*corev1.ConfigMap]) error {
				others.Store(int32(len(pods.ByIndex("node", r.Key().Name))))
				return nil
			})
		},
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		node := configMapOf(ns, "node-1")
		node.Labels = map[string]string{"test": "reader"}
		e.Create(node, podOf(ns, "a", "node-1"), podOf(ns, "b", "node-2"))
		e.Settle()
		wantPods(e, ns, "a")
		before := calls.Load()
		Update(e, ns, "a", func(p *corev1.Pod) { p.Annotations = map[string]string{"other": "fact"} })
		e.Settle()
		if n := calls.Load(); n != before {
			t.Errorf("%d calls for a change of other facts, want none", n-before)
		}
		Update(e, ns, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"color": "red"} })
		e.Settle()
		wantPods(e, ns, "ared")
		e.Create(podOf(ns, "c", "node-1"))
		e.Settle()
		wantPods(e, ns, "ared c")
		if n := others.Load(); n != 2 {
			t.Errorf("the other controller finds %d Pods by the shared index, want 2", n)
		}
		e.Delete(podOf(ns, "c", ""))
		e.Settle()
		wantPods(e, ns, "ared")
		Update(e, ns, "a", func(p *corev1.Pod) { p.Labels["color"] = "odd" }) // FactsOf panics
		e.Settle()
		wantPods(e, ns, "")
	}, "--namespace="+ns)
}

// TestRecordOfUndecodableObject reads records of Widgets, one of whose specs becomes text.
func TestRecordOfUndecodableObject(t *testing.T) {
	const ns = "compact-undecodable"
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	colorOf := func(w *controller.Record[widgetColor]) string {
		if w.Facts() == "" {
			t.Error("a function got a record without facts")
		}
		return string(w.Facts())
	}
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"), controller.MayPatch())
		widgets := controller.WatchAs(configMaps,
			func(w *controller.Record[widgetColor]) []cache.ObjectName {
				return []cache.ObjectName{cache.NewObjectName(w.GetNamespace(), "node-"+colorOf(w))}
			},
			controller.Index("color", func(w *controller.Record[widgetColor]) []string { return []string{colorOf(w)} }),
			controller.Changes(func(before, now *controller.Record[widgetColor]) bool {
				return before == nil || now == nil || colorOf(before) != colorOf(now)
			}))
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			all := []string{}
			for _, w := range slices.Concat(widgets.List(""), widgets.ByIndex("color", "red")) {
				all = append(all, w.GetName()+string(w.Facts()))
			}
			slices.Sort(all)
			m.Annotations = map[string]string{"pods": strings.Join(all, " ")}
			return r.Patch(ctx, m)
		})
	}
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		wantAll := func(want string) {
			t.Helper()
			if m, _ := Get[*corev1.ConfigMap](e, ns, "node-red"); m.Annotations["pods"] != want {
				t.Errorf("the records are %q, want %q", m.Annotations["pods"], want)
			}
		}
		m := configMapOf(ns, "node-red")
		m.Labels = map[string]string{"test": "reader"}
		e.Create(m, &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a", Labels: map[string]string{"color": "red"}}})
		e.Settle()
		wantAll("ared ared")
		patchWidget(e, ns, `{"spec":{"containers":"none"}}`)
		e.Settle()
		wantAll("")
		patchWidget(e, ns, `{"spec":{"containers":null}}`)
		e.Settle()
		wantAll("ared ared")
	}, "--namespace="+ns)
}

// TestCompactMetadata reads records of the metadata of Secrets.
func TestCompactMetadata(t *testing.T) {
	const ns = "compact-metadata"
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"), controller.MayPatch())
		secrets := controller.WatchAs(configMaps,
			func(s *controller.Record[metadataColor]) []cache.ObjectName {
				return []cache.ObjectName{cache.NewObjectName(s.GetNamespace(), s.GetName())}
			},
			controller.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret")))
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			m.Annotations = map[string]string{"secret": "none"}
			if secret, ok := secrets.Get(m.Namespace, m.Name); ok {
				m.Annotations["secret"] = string(secret.Facts())
			}
			return r.Patch(ctx, m)
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		m, secret := configMapOf(ns, "a"), secretOf(ns, "a", "1")
		m.Labels, secret.Labels = map[string]string{"test": "reader"}, map[string]string{"color": "red"}
		e.Create(m)
		e.Settle()
		wantAnnotation(e, ns, "none")
		e.Create(secret)
		e.Settle()
		wantAnnotation(e, ns, "red")
	}, "--namespace="+ns)
}

// TestWrongUseOfRecordsIsRefused has controllers that read one kind in different ways.
func TestWrongUseOfRecordsIsRefused(t *testing.T) {
	none := func(*podRecord) []cache.ObjectName { return nil }
	whole := func(*corev1.Pod) []cache.ObjectName { return nil }
	expectRefusals(t, map[string]func(builder){
		"Resource=pods as *controller.Record[samplecontroller.io/controller-manager/managertest.size]: all callers share " +
			"one informer": func(b builder) {
			controller.WatchAs(b, none)
			controller.WatchAs(b, func(*controller.Record[size]) []cache.ObjectName { return nil })
		},
		"as *v1.Pod: all callers share one informer, which is for /v1, Resource=pods as " +
			"*controller.Record": func(b builder) {
			controller.WatchAs(b, none)
			controller.Watch(b, whole)
		},
		"which is for /v1, Resource=pods as *v1.Pod: read the resource in one version, and as one type, in all " +
			"calls": func(b builder) {
			controller.Watch(b, whole)
			controller.WatchAs(b, none)
		},
		"Index for *v1.Pod was given to a kind of type *controller.Record": func(b builder) {
			controller.WatchAs(b, none, controller.Index("a", func(*corev1.Pod) []string { return nil }))
		},
		"test-controller: WatchAs needs a function, but got nil": func(b builder) {
			controller.WatchAs[placement](b, nil)
		},
		"indexer conflict: map[test-controller: a:{}]: give each index a name of its own, or give it once and share " +
			"what reads it": func(b builder) {
			index := controller.Index("a", func(*podRecord) []string { return nil })
			controller.WatchAs(b, none, index)
			controller.WatchAs(b, none, index)
		},
	})
}

// TestFactsThatPanic makes the cache report an object on which the function panics.
func TestFactsThatPanic(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		nodes := controller.For[*corev1.ConfigMap](c)
		controller.WatchAs(nodes, nodeKey)
		return nodes.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
	})
	Run(t, p, func(t *testing.T, e *Env) {
		odd := podOf("ns", "a", "node-1")
		odd.Labels = map[string]string{"color": "odd"}
		e.Create(odd)
		time.Sleep(time.Minute)
		const want = "transform fails for pods ns/a: panic: an odd color"
		if err := e.context.Informers().CheckWatches(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the informers are unhealthy with %v, want %q", err, want)
		}
	})
}

// TestNewRecord makes a record without a cache.
func TestNewRecord(t *testing.T) {
	pod := podOf("ns", "a", "node-1")
	pod.ResourceVersion = "7"
	r := controller.NewRecord[placement](pod)
	key := cache.NewObjectName(r.GetNamespace(), r.GetName())
	if key.String() != "ns/a" || r.GetResourceVersion() != "7" || r.Facts().node.Value() != "node-1" {
		t.Errorf("the record of %s at %s has the facts %v", key, r.GetResourceVersion(), r.Facts())
	}
	pod.ResourceVersion = ""
	if r := controller.NewRecord[placement](pod); r.GetResourceVersion() != "0" {
		t.Errorf("the record of a Pod without a resourceVersion has %s", r.GetResourceVersion())
	}
}
