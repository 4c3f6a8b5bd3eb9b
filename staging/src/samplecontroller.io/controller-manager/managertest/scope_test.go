// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
)

// TestClusterScopedOwner has a controller that keeps a ConfigMap in each labeled Namespace, and in the
// namespace scope-common.
func TestClusterScopedOwner(t *testing.T) {
	const label = "scope.example.com/defaults"
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		namespaces := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
		configMaps := controller.Owns[*corev1.ConfigMap](namespaces, controller.MayDelete())
		return namespaces.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Namespace]) error {
			n, ok := r.Object()
			if !ok || n.Labels[label] == "" {
				for _, owned := range configMaps.List(r) {
					if err := configMaps.In(owned.Namespace).Delete(ctx, r, owned.Name); err != nil {
						return err
					}
				}
				return nil
			}
			for _, in := range []string{n.Name, "scope-common"} {
				if _, err := configMaps.In(in).Ensure(ctx, r, n.Name, func(m *corev1.ConfigMap) {
					m.Data = map[string]string{"value": n.Labels[label]}
				}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		e.Create(namespaceOf("scope-common", nil), namespaceOf("scope-a", nil))
		e.Settle()
		expect(t, "writes", e.Writes())
		Update(e, "", "scope-a", func(n *corev1.Namespace) { n.Labels = map[string]string{label: "1"} })
		e.Settle()
		expect(t, "writes", e.Writes(), "create configmaps scope-a/scope-a", "create configmaps scope-common/scope-a")
		Update(e, "scope-common", "scope-a", func(m *corev1.ConfigMap) { m.Data = nil })
		e.Settle()
		expect(t, "writes", e.Writes(), "patch configmaps scope-common/scope-a")
		Update(e, "", "scope-a", func(n *corev1.Namespace) { n.Labels = nil })
		e.Settle()
		writes := strings.Join(e.Writes(), ", ")
		if !strings.Contains(writes, "delete configmaps scope-a/scope-a") || !strings.Contains(writes, "delete configmaps scope-common/scope-a") {
			t.Errorf("writes %s, want two deletions", writes)
		}
	})
}

// TestPatchInAnyNamespace patches what List returns for an owner without namespace.
func TestPatchInAnyNamespace(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		namespaces := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
		configMaps := controller.Owns[*corev1.ConfigMap](namespaces)
		return namespaces.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Namespace]) error {
			n, _ := r.Object()
			for _, owned := range configMaps.List(r) {
				owned.Data = map[string]string{"value": n.Labels["value"]}
				if _, err := configMaps.Patch(ctx, r, owned); err != nil {
					return err
				}
			}
			return nil
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(namespaceOf("patch-a", map[string]string{"value": "1"}), namespaceOf("patch-b", nil))
		n, _ := Get[*corev1.Namespace](e, "", "patch-a")
		for _, in := range []string{"patch-a", "patch-b"} {
			m := configMapOf(in, "settings")
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(n, corev1.SchemeGroupVersion.WithKind("Namespace"))}
			e.Create(m)
		}
		e.Settle()
		for _, in := range []string{"patch-a", "patch-b"} {
			if m, _ := Get[*corev1.ConfigMap](e, in, "settings"); m.Data["value"] != "1" {
				t.Errorf("the ConfigMap in %s has %v, want the value of its owner", in, m.Data)
			}
		}
	})
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestWrongScopeIsRefused declares the scope of a kind wrongly, or asks for an owner that the garbage
// collector would not accept.
func TestWrongScopeIsRefused(t *testing.T) {
	forNamespaces := func(opts ...controller.Option) func(*controller.Context) (controller.Controller, error) {
		return func(c *controller.Context) (controller.Controller, error) {
			namespaces := controller.For[*corev1.Namespace](c, opts...)
			configMaps := controller.Owns[*corev1.ConfigMap](namespaces)
			return namespaces.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Namespace]) error {
				_, err := configMaps.Ensure(ctx, r, "a", func(*corev1.ConfigMap) {})
				return err
			})
		}
	}
	forConfigMaps := func(in string, opts ...controller.Option) func(*controller.Context) (controller.Controller, error) {
		return func(c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c, opts...)
			secrets := controller.Owns[*corev1.Secret](configMaps)
			return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
				_, err := secrets.In(in).Ensure(ctx, r, "a", func(*corev1.Secret) {})
				return err
			})
		}
	}
	for name, test := range map[string]struct {
		make   func(*controller.Context) (controller.Controller, error)
		object Object
		want   string
	}{
		"ClusterScoped is missing": {
			forNamespaces(), namespaceOf("team", nil), " has no namespace: give For the option ClusterScoped",
		},
		"ClusterScoped is wrong": {
			forConfigMaps("", controller.ClusterScoped()), configMapOf("team", "a"),
			"ConfigMap team/a has a namespace, but For was given the option ClusterScoped: remove it",
		},
		"In is missing": {
			forNamespaces(controller.ClusterScoped()), namespaceOf("team", nil),
			" has no namespace, so none is known for ConfigMap a: call Owned.In(namespace) first",
		},
		"another namespace": {
			forConfigMaps("other"), configMapOf("team", "a"),
			"ConfigMap team/a cannot own Secret other/a in another namespace: the garbage collector would delete it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, syncing(test.make), func(t *testing.T, e *Env) {
				e.Create(test.object)
				time.Sleep(time.Minute)
				if failure := failureOf(e); !strings.Contains(failure, test.want) {
					t.Errorf("the object fails with %q, want %q", failure, test.want)
				}
				expect(t, "writes", e.Writes())
			})
		})
	}
}

func configMapOf(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// failureOf returns the error of the only failing object of the only controller.
func failureOf(e *Env) string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	p := e.controllers[0].(supervisor.Looper).Loops()[0].Progress(1)
	if len(p.Failures) == 0 {
		return ""
	}
	return p.Failures[0].Error
}

// TestWrongScopeIsRefusedAtStart covers what is known without an object.
func TestWrongScopeIsRefusedAtStart(t *testing.T) {
	done := func(context.Context, *controller.Request[*corev1.Namespace]) error { return nil }
	for name, test := range map[string]struct {
		make func(*controller.Context) (controller.Controller, error)
		args []string
		want string
	}{
		"one namespace": {
			func(c *controller.Context) (controller.Controller, error) {
				return controller.For[*corev1.Namespace](c, controller.ClusterScoped()).Reconcile(done)
			},
			[]string{"--namespace=team"},
			"test-controller reads objects without a namespace (*v1.Namespace), so it cannot run with --namespace=team: leave out --namespace, or disable the controller",
		},
		"owner with a namespace": {
			func(c *controller.Context) (controller.Controller, error) {
				configMaps := controller.For[*corev1.ConfigMap](c)
				controller.Owns[*corev1.Namespace](configMaps, controller.ClusterScoped())
				return configMaps.Reconcile(nil)
			},
			nil, "a ConfigMap has a namespace, so it cannot own a Namespace, which has none",
		},
		"reference into an unknown namespace": {
			func(c *controller.Context) (controller.Controller, error) {
				namespaces := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
				controller.Refers[*corev1.ConfigMap](namespaces, func(*corev1.Namespace) []string { return nil })
				return namespaces.Reconcile(done)
			},
			nil, "refers from a Namespace, which has no namespace, to a ConfigMap, which has one: use Watch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := failing(t, syncing(test.make), func(*testing.T, *Env) {}, test.args...)
			if all := strings.Join(errs, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the test fails for %q, want %q", all, test.want)
			}
		})
	}
}
