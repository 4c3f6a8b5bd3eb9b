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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// TestReferredObjects has a controller that copies the Secrets which a ConfigMap names to a Secret.
func TestReferredObjects(t *testing.T) {
	const ns = "reader-refers"
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"))
		copies := controller.Owns[*corev1.Secret](configMaps)
		secrets := controller.Refers[*corev1.Secret](configMaps,
			func(m *corev1.ConfigMap) []string { return strings.Fields(m.Data["secrets"]) })
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			all := map[string][]byte{}
			for name := range strings.FieldsSeq(m.Data["secrets"]) {
				if secret, ok := secrets.Get(m.Namespace, name); ok {
					all[name] = secret.Data["value"]
				}
			}
			_, err := copies.Ensure(ctx, r, m.Name, func(s *corev1.Secret) { s.Data = all })
			return err
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		m := configMapOf(ns, "copy")
		m.Labels, m.Data = map[string]string{"test": "reader"}, map[string]string{"secrets": "one two one"}
		e.Create(m, secretOf(ns, "one", "1"), secretOf(ns, "other", "x"))
		e.Settle()
		wantCopy(e, ns, "one=1")
		e.Writes()
		e.Create(secretOf(ns, "two", "2"))
		e.Settle()
		wantCopy(e, ns, "one=1 two=2")
		expect(t, "writes", e.Writes(), "patch secrets "+ns+"/copy")
		Update(e, ns, "other", func(s *corev1.Secret) { s.Data = nil })
		e.Settle()
		expect(t, "writes", e.Writes())
		e.Delete(secretOf(ns, "one", ""))
		e.Settle()
		wantCopy(e, ns, "two=2")
		Update(e, ns, "copy", func(m *corev1.ConfigMap) { m.Data["secrets"] = "other" })
		e.Settle()
		wantCopy(e, ns, "other=")
	}, "--namespace="+ns)
}

func secretOf(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string][]byte{"value": []byte(value)}}
}

func wantCopy(e *Env, ns, want string) {
	e.t.Helper()
	secret, _ := Get[*corev1.Secret](e, ns, "copy")
	var got []string
	for name, value := range secret.Data {
		got = append(got, name+"="+string(value))
	}
	slices.Sort(got)
	if strings.Join(got, " ") != want {
		e.t.Errorf("the copy has %q, want %q", got, want)
	}
}

// TestWatchedObjects has a controller that counts the Pods of each node of its namespace, which it
// finds by an index, in an annotation of a ConfigMap with the name of the node. A transform drops what
// it does not read.
func TestWatchedObjects(t *testing.T) {
	const ns = "reader-watch"
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		nodes := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"), controller.MayPatch())
		pods := controller.Watch[*corev1.Pod](nodes, func(p *corev1.Pod) []cache.ObjectName {
			return []cache.ObjectName{cache.NewObjectName(p.Namespace, p.Spec.NodeName)}
		}, controller.Index("node", func(p *corev1.Pod) []string {
			if p.Name == "odd" {
				panic("an odd Pod")
			}
			return []string{p.Spec.NodeName}
		}), controller.Transform(func(p *corev1.Pod) { p.Spec.Containers = nil }))
		return nodes.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			node, ok := r.Object()
			if !ok {
				return nil
			}
			var names []string
			for _, pod := range pods.ByIndex("node", node.Name) {
				if len(pod.Spec.Containers) > 0 {
					t.Errorf("Pod %s has containers in the cache", pod.Name)
				}
				names = append(names, pod.Name)
				pod.Labels = map[string]string{"changed": "true"} // a copy
			}
			for _, pod := range pods.List(node.Namespace) {
				if pod.Labels["changed"] != "" {
					t.Error("the cached Pod has been changed")
				}
			}
			slices.Sort(names)
			node.Annotations = map[string]string{"pods": strings.Join(names, " ")}
			return r.Patch(ctx, node)
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		node := configMapOf(ns, "node-1")
		node.Labels = map[string]string{"test": "reader"}
		e.Create(node, podOf(ns, "a", "node-1"), podOf(ns, "odd", "node-1"))
		e.Settle()
		wantPods(e, ns, "a")
		e.Create(podOf(ns, "b", "node-1"), podOf(ns, "c", "node-2"))
		e.Settle()
		wantPods(e, ns, "a b")
		e.Delete(podOf(ns, "a", ""))
		e.Settle()
		wantPods(e, ns, "b")
	}, "--namespace="+ns)
}

// TestChangesFilterEvents has a controller that only the end of a Pod concerns.
func TestChangesFilterEvents(t *testing.T) {
	const ns = "changes"
	var calls atomic.Int32
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		nodes := controller.For[*corev1.ConfigMap](c, controller.Selector("test=changes"))
		controller.Watch(nodes, func(p *corev1.Pod) []cache.ObjectName {
			return []cache.ObjectName{cache.NewObjectName(ns, p.Spec.NodeName)}
		}, controller.Changes(func(before, now *corev1.Pod) bool { return now == nil && before.Labels["color"] == "red" }))
		return nodes.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
			calls.Add(1)
			return nil
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(podOf(ns, "a", "node-1"), podOf(ns, "b", "node-1"))
		e.Settle()
		Update(e, ns, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"color": "red"} })
		e.Settle()
		e.Delete(podOf(ns, "b", ""))
		e.Settle()
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls for events that do not concern the controller, want none", n)
		}
		e.Delete(podOf(ns, "a", ""))
		e.Settle()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls for the end of the Pod, want one", n)
		}
	}, "--namespace="+ns)
}

// TestManagedFieldsAreCached reads them with and without the option.
func TestManagedFieldsAreCached(t *testing.T) {
	const ns = "managed-fields"
	for name, opts := range map[string][]controller.Option{"by default": nil, "with the option": {controller.ManagedFields()}} {
		t.Run(name, func(t *testing.T) {
			var entries atomic.Int32
			p := syncing(func(c *controller.Context) (controller.Controller, error) {
				configMaps := controller.For[*corev1.ConfigMap](c, opts...)
				return configMaps.Reconcile(func(_ context.Context, r *controller.Request[*corev1.ConfigMap]) error {
					m, _ := r.Object()
					entries.Store(int32(len(m.GetManagedFields())))
					return nil
				})
			})
			Run(t, p, func(t *testing.T, e *Env) {
				e.Create(configMapOf(ns, "a"))
				e.Settle()
				if n := entries.Load(); (n > 0) != (len(opts) > 0) {
					t.Errorf("the cached object has %d entries of managed fields", n)
				}
			})
		})
	}
}

func podOf(namespace, name, node string) *corev1.Pod {
	none := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "a"}}, TerminationGracePeriodSeconds: &none,
		},
	}
}

func wantPods(e *Env, ns, want string) {
	e.t.Helper()
	node, _ := Get[*corev1.ConfigMap](e, ns, "node-1")
	if got := node.Annotations["pods"]; got != want {
		e.t.Errorf("the node has the Pods %q, want %q", got, want)
	}
}

// TestMistakesWithReadersAreNamed covers options for another type, and an index that does not exist.
func TestMistakesWithReadersAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		opt  controller.Option
		want string
	}{
		"index":     {controller.Index("a", func(*corev1.Pod) []string { return nil }), "Index for *v1.Pod was given to a kind of type *v1.Secret"},
		"transform": {controller.Transform(func(*corev1.Pod) {}), "Transform for *v1.Pod was given to a kind of type *v1.Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := failing(t, syncing(func(c *controller.Context) (controller.Controller, error) {
				configMaps := controller.For[*corev1.ConfigMap](c)
				controller.Watch[*corev1.Secret](configMaps, nil, test.opt)
				return configMaps.Reconcile(nil)
			}), func(*testing.T, *Env) {})
			if all := strings.Join(errs, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the test fails for %q, want %q", all, test.want)
			}
		})
	}
	t.Run("managed fields", func(t *testing.T) {
		errs := failing(t, syncing(func(c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c)
			controller.Refers[*corev1.ConfigMap](configMaps, func(*corev1.ConfigMap) []string { return nil },
				controller.ManagedFields())
			return configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
		}), func(*testing.T, *Env) {})
		const want = "which keeps the managed fields of objects or drops them: keep them in all calls, or in none"
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	})
	t.Run("no index", func(t *testing.T) {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c)
			secrets := controller.Refers[*corev1.Secret](configMaps, func(*corev1.ConfigMap) []string { return nil })
			return configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
				secrets.ByIndex("color", "red")
				return nil
			})
		})
		Run(t, p, func(t *testing.T, e *Env) {
			e.Create(configMapOf("ns", "a"))
			time.Sleep(time.Minute)
			const want = "reading Secret by index: Index with name test-controller: color does not exist: give the option Index"
			if failure := failureOf(e); !strings.Contains(failure, want) {
				t.Errorf("the object fails with %q, want %q", failure, want)
			}
		})
	})
}

// TestMetadataOnlyReader has a controller that notes in an annotation whether the Secret of its name
// exists, without reading the Secret's data.
func TestMetadataOnlyReader(t *testing.T) {
	const ns = "reader-metadata"
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=reader"), controller.MayPatch())
		secrets := controller.Refers[*metav1.PartialObjectMetadata](configMaps,
			func(m *corev1.ConfigMap) []string { return []string{m.Name} },
			controller.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret")))
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			secret, exists := secrets.Get(m.Namespace, m.Name)
			m.Annotations = map[string]string{"secret": "none"}
			if exists {
				m.Annotations["secret"] = secret.Labels["kind"]
			}
			return r.Patch(ctx, m)
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		m := configMapOf(ns, "a")
		m.Labels = map[string]string{"test": "reader"}
		e.Create(m)
		e.Settle()
		wantAnnotation(e, ns, "none")
		secret := secretOf(ns, "a", "1")
		secret.Labels = map[string]string{"kind": "password"}
		e.Create(secret)
		e.Settle()
		wantAnnotation(e, ns, "password")
		e.Delete(secret)
		e.Settle()
		wantAnnotation(e, ns, "none")
	}, "--namespace="+ns)
}

func wantAnnotation(e *Env, ns, want string) {
	e.t.Helper()
	m, _ := Get[*corev1.ConfigMap](e, ns, "a")
	if got := m.Annotations["secret"]; got != want {
		e.t.Errorf("the annotation is %q, want %q", got, want)
	}
}

func TestWrongUseOfMetadataIsRefused(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	for want, make := range map[string]func(*controller.Context) (controller.Controller, error){
		"read metadata only as Watch": func(c *controller.Context) (controller.Controller, error) {
			return controller.For[*metav1.PartialObjectMetadata](c).Reconcile(nil)
		},
		"with the option MetadataOf": func(c *controller.Context) (controller.Controller, error) {
			return controller.For[*corev1.ConfigMap](c, controller.MetadataOf(kind)).Reconcile(nil)
		},
		"For reconciles whole objects": func(c *controller.Context) (controller.Controller, error) {
			return controller.For[*metav1.PartialObjectMetadata](c, controller.MetadataOf(kind)).Reconcile(nil)
		},
		"Owns writes whole objects": func(c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c)
			controller.Owns[*metav1.PartialObjectMetadata](configMaps, controller.MetadataOf(kind))
			return configMaps.Reconcile(nil)
		},
	} {
		errs := failing(t, syncing(make), func(*testing.T, *Env) {})
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}
