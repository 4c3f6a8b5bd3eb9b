// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"testing"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

type (
	builder = *controller.Builder[*corev1.ConfigMap]
	call    = *controller.Request[*corev1.ConfigMap]
)

func nothing(context.Context, call) error { return nil }

func noKeys[T any](T) []cache.ObjectName { return nil }

// TestWrongDeclarationsEndProgram declares what the library would have to ignore.
func TestWrongDeclarationsEndProgram(t *testing.T) {
	names := func(*corev1.ConfigMap) []string { return nil }
	expectRefusals(t, map[string]func(builder){
		"test-controller: Owns of *v1.Secret has no option Queue, which is for For": func(b builder) {
			controller.Owns[*corev1.Secret](b, controller.Queue("a"))
		},
		"test-controller: Watch of *v1.Secret has no option MayPatch, which is for For": func(b builder) {
			controller.Watch(b, noKeys[*corev1.Secret], controller.MayPatch())
		},
		"test-controller: Owns of *v1.Secret has no option MayPatchStatus, which is for For": func(b builder) {
			controller.Owns[*corev1.Secret](b, controller.MayPatchStatus())
		},
		"test-controller: Refers of *v1.Secret has no option MayDelete, which is for For and Owns": func(b builder) {
			controller.Refers[*corev1.Secret](b, names, controller.MayDelete())
		},
		"test-controller: Owns of *v1.ConfigMap has no option Index, which is for Watch and Refers and " +
			"WatchAs": func(b builder) { controller.Owns[*corev1.ConfigMap](b, controller.Index("a", names)) },
		"Index for *v1.Secret needs a function": func(b builder) {
			controller.Watch(b, noKeys[*corev1.Secret], controller.Index[*corev1.Secret]("a", nil))
		},
		"Transform for *v1.Secret needs a function": func(b builder) {
			controller.Watch(b, noKeys[*corev1.Secret], controller.Transform[*corev1.Secret](nil))
		},
		"test-controller: Watch needs a function, but got nil": func(b builder) {
			controller.Watch[*corev1.Secret](b, nil)
		},
		"test-controller: Refers needs a function, but got nil": func(b builder) {
			controller.Refers[*corev1.Secret](b, nil)
		},
		"test-controller: Source needs a function, but got nil":   func(b builder) { b.Source(nil) },
		"test-controller: Finalize needs a function, but got nil": func(b builder) { b.Finalize("example.com/a", nil) },
		"test-controller: Explain needs a function, but got nil":  func(b builder) { b.Explain(nil) },
		"test-controller: Count needs a function, but got nil":    func(b builder) { b.Count(nil, nil) },
		"Paced with the interval -1s: it must not be negative":    func(b builder) { b.Paced(-time.Second, nil) },
		"Owns is called twice for secrets: call it once, and use what it returns": func(b builder) {
			controller.Owns[*corev1.Secret](b)
			controller.Owns[*corev1.Secret](b)
		},
		"Refers is called twice for secrets: call it once, with a function that returns all names": func(b builder) {
			controller.Refers[*corev1.Secret](b, names)
			controller.Refers[*corev1.Secret](b, names)
		},
		"give the same transform in all calls, or none": func(b builder) {
			controller.Watch(b, noKeys[*corev1.Secret])
			controller.Watch(b, noKeys[*corev1.Secret], controller.Transform(func(*corev1.Secret) {}))
		},
		"the facts managertest.pointed of WatchAs have a pointer, *int, so two records of an object would never be " +
			"equal": func(b builder) {
			controller.WatchAs(b, noKeys[*controller.Record[pointed]])
		},
	})
}

// expectRefusals expects that each declaration ends the program with the text that is its key.
func expectRefusals(t *testing.T, declarations map[string]func(builder)) {
	t.Helper()
	for want, declare := range declarations {
		errs := failing(t, syncing(func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.ConfigMap](c)
			declare(b)
			return b.Reconcile(nothing)
		}), func(*testing.T, *Env) {})
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}

// TestWrongConstructorsEndProgram covers what is ignored by the order of calls, or not returned.
func TestWrongConstructorsEndProgram(t *testing.T) {
	after := func(declare func(builder)) func(*controller.Context) (controller.Controller, error) {
		return func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.ConfigMap](c)
			built, err := b.Reconcile(nothing)
			declare(b)
			return built, err
		}
	}
	for want, construct := range map[string]func(*controller.Context) (controller.Controller, error){
		"Watch is called after Reconcile: declare all that the controller needs before": after(func(b builder) {
			controller.Watch(b, noKeys[*corev1.Secret])
		}),
		"Owns is called after Reconcile": after(func(b builder) {
			controller.Owns[*corev1.Secret](b)
		}),
		"WatchAs is called after Reconcile": after(func(b builder) {
			controller.WatchAs(b, noKeys[*podRecord])
		}),
		"Finalize is called after Reconcile": after(func(b builder) {
			b.Finalize("example.com/a", nothing)
		}),
		"OnDeletion is called after Reconcile": after(func(b builder) {
			b.OnDeletion()
		}),
		"Paced is called after Reconcile": after(func(b builder) {
			b.Paced(time.Second, nil)
		}),
		"Reconcile is called after Reconcile": after(func(b builder) {
			_, _ = b.Reconcile(nothing)
		}),
		"has made 2 controllers with For, but returned only 1: return Join of all": func(c *controller.Context) (controller.Controller, error) {
			if _, err := controller.For[*corev1.ConfigMap](c).Reconcile(nothing); err != nil {
				return nil, err
			}
			return controller.For[*corev1.ConfigMap](c, controller.Queue("b")).Reconcile(nothing)
		},
	} {
		errs := failing(t, syncing(construct), func(*testing.T, *Env) {})
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}

// pointed are facts that cannot be compared.
type pointed struct{ a *int }

// FactsOf implements controller.Facts.
func (pointed) FactsOf(*corev1.Secret) pointed { return pointed{new(int)} }

// values are facts of all kinds that are compared as values.
type values struct {
	name    string
	node    unique.Handle[string]
	since   time.Time
	created metav1.Time
	ports   [2]int32
}

// FactsOf implements controller.Facts.
func (values) FactsOf(p *corev1.Pod) values {
	return values{p.Name, unique.Make(p.Spec.NodeName), time.Time{}, p.CreationTimestamp, [2]int32{}}
}

// namespaced is a fact about a Namespace.
type namespaced int

// FactsOf implements controller.Facts.
func (namespaced) FactsOf(*corev1.Namespace) namespaced { return 1 }

func TestFactsWithoutPointers(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c)
		controller.WatchAs(b, noKeys[*controller.Record[values]])
		return b.Reconcile(nothing)
	})
	Run(t, p, func(*testing.T, *Env) {})
}

// TestWrongScopeIsDegraded declares the scope of a kind wrongly that is only read or owned. Its
// objects could never be found.
func TestWrongScopeIsDegraded(t *testing.T) {
	names := func(*corev1.ConfigMap) []string { return []string{"a"} }
	secret := secretOf("ns", "a", "")
	for name, test := range map[string]struct {
		declare func(builder)
		object  Object
		want    string
	}{
		"Refers, missing": {
			func(b builder) { controller.Refers[*corev1.Namespace](b, names) },
			namespaceOf("a", nil),
			" has no namespace: give Refers the option ClusterScoped",
		},
		"Watch, missing": {
			func(b builder) { controller.Watch(b, noKeys[*corev1.Namespace]) },
			namespaceOf("a", nil),
			" has no namespace: give Watch the option ClusterScoped",
		},
		"WatchAs, missing": {func(b builder) {
			controller.WatchAs(b, noKeys[*controller.Record[namespaced]])
		}, namespaceOf("a", nil), " has no namespace: give WatchAs the option ClusterScoped"},
		"Owns, missing": {
			func(b builder) { controller.Owns[*corev1.Namespace](b) },
			namespaceOf("a", nil),
			" has no namespace: give Owns the option ClusterScoped",
		},
		"Refers, wrong": {
			func(b builder) { controller.Refers[*corev1.Secret](b, names, controller.ClusterScoped()) },
			secret,
			"Secret ns/a has a namespace, but Refers was given the option ClusterScoped: remove it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := syncing(func(c *controller.Context) (controller.Controller, error) {
				b := controller.For[*corev1.ConfigMap](c)
				test.declare(b)
				return b.Reconcile(nothing)
			})
			errs := failing(t, p, func(t *testing.T, e *Env) {
				e.Create(test.object)
				e.Settle()
			})
			expectFailure(t, errs, test.want) // for one of the Namespaces
		})
	}
}
