// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func names(controllers []Controller) []string {
	var names []string
	for _, c := range controllers {
		names = append(names, c.Name())
	}
	return names
}

func TestBuildMakesNamedControllersSorted(t *testing.T) {
	made := map[string]int{}
	counted := func(d *Descriptor) {
		name := d.Name
		d.New = func(context.Context, *Context) (Controller, error) {
			made[name]++
			return fakeController(name), nil
		}
	}
	r := NewRegistry(descriptor("c-controller", counted), descriptor("b-controller", counted), descriptor("a-controller", counted))

	controllers, err := r.Build(t.Context(), newProcess(t, ""), []string{"c-controller", "a-controller"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-controller", "c-controller"}, names(controllers)); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"a-controller": 1, "c-controller": 1}, made); diff != "" {
		t.Errorf("constructors called (-want +got):\n%s", diff)
	}
}

var errBroken = errors.New("no such thing")

// TestFailedConstructorStopsOnlyItsController also requests an informer that only the failed
// constructor needs.
func TestFailedConstructorStopsOnlyItsController(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func() error
		want string
	}{
		"returns an error": {func() error { return errBroken }, "building bad-controller: no such thing"},
		"panics":           {func() error { panic("out of range") }, "building bad-controller: panic: out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, "http://localhost")
			r := NewRegistry(
				descriptor("bad-controller", func(d *Descriptor) {
					d.New = func(_ context.Context, c *Context) (Controller, error) {
						For[*corev1.ConfigMap](c)
						For[*corev1.Secret](c)
						return nil, tc.fail()
					}
				}),
				descriptor("good-controller", func(d *Descriptor) {
					d.New = func(_ context.Context, c *Context) (Controller, error) {
						return For[*corev1.ConfigMap](c).Reconcile(doNothing[*corev1.ConfigMap])
					}
				}),
			)
			controllers, err := r.Build(t.Context(), p, r.Names())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"bad-controller", "good-controller"}, names(controllers)); diff != "" {
				t.Fatalf("controllers (-want +got):\n%s", diff)
			}
			for range 2 {
				want := "cannot run before this process is started again: " + tc.want
				if err := controllers[0].Run(t.Context()); err == nil || err.Error() != want {
					t.Errorf("Run of the failed controller: %v, want %q", err, want)
				}
			}
			if err := Unbuilt(controllers); err == nil || err.Error() != tc.want {
				t.Errorf("Unbuilt: %v, want %q", err, tc.want)
			}
			if err := Unbuilt(controllers[1:]); err != nil {
				t.Errorf("Unbuilt without the failed controller: %v, want nil", err)
			}
			var resources []string
			for _, resource := range p.Informers.Resources() {
				resources = append(resources, resource.Name())
			}
			if diff := cmp.Diff([]string{"configmaps"}, resources); diff != "" {
				t.Errorf("informers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildFailsWithoutAnyController(t *testing.T) {
	failing := func(d *Descriptor) {
		d.New = func(context.Context, *Context) (Controller, error) { return nil, errBroken }
	}
	r := NewRegistry(descriptor("foo-controller"), descriptor("bar-controller", failing), descriptor("baz-controller", failing))
	controllers, err := r.Build(t.Context(), newProcess(t, ""), []string{"bar-controller", "baz-controller"})
	if want := "building bar-controller: no such thing\nbuilding baz-controller: no such thing"; err == nil || err.Error() != want || !errors.Is(err, errBroken) {
		t.Errorf("Build: error %v, want %q", err, want)
	}
	if controllers != nil {
		t.Errorf("Build returned %v with an error", names(controllers))
	}
}

// TestMisuseInConstructorEndsProgram covers mistakes that another controller must not hide.
func TestMisuseInConstructorEndsProgram(t *testing.T) {
	for want, construct := range map[string]Constructor{
		"building bad-controller: its constructor returned no controller": func(context.Context, *Context) (Controller, error) { return nil, nil },
		"use the same selector in all calls": func(_ context.Context, c *Context) (Controller, error) {
			return For[*corev1.ConfigMap](c, Selector("a=b")).Reconcile(doNothing[*corev1.ConfigMap])
		},
		"invalid selector": func(_ context.Context, c *Context) (Controller, error) {
			return For[*corev1.Secret](c, Selector("a in")).Reconcile(doNothing[*corev1.Secret])
		},
		"not registered in the scheme": func(_ context.Context, c *Context) (Controller, error) {
			return For[*custom](c).Reconcile(doNothing[*custom])
		},
		"needs one call of Reconcile": func(_ context.Context, c *Context) (Controller, error) {
			For[*corev1.ConfigMap](c)
			return fakeController(c.Name()), nil
		},
	} {
		t.Run(want, func(t *testing.T) {
			r := NewRegistry(
				descriptor("a-good-controller", func(d *Descriptor) {
					d.New = func(_ context.Context, c *Context) (Controller, error) {
						return For[*corev1.ConfigMap](c).Reconcile(doNothing[*corev1.ConfigMap])
					}
				}),
				descriptor("bad-controller", func(d *Descriptor) { d.New = construct }),
			)
			_, err := r.Build(t.Context(), newProcess(t, "http://localhost"), r.Names())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "building bad-controller: ") {
				t.Errorf("Build: %v, want an error that names the controller and contains %q", err, want)
			}
		})
	}
}

func TestBuildRejectsWrongName(t *testing.T) {
	r := NewRegistry(descriptor("foo-controller", func(d *Descriptor) {
		d.New = func(context.Context, *Context) (Controller, error) { return fakeController("bar-controller"), nil }
	}))
	_, err := r.Build(t.Context(), newProcess(t, ""), r.Names())
	if err == nil || !strings.Contains(err.Error(), "foo-controller") || !strings.Contains(err.Error(), `"bar-controller"`) {
		t.Errorf("Build: error %v, want one with both names", err)
	}
}

func TestBuildRejectsUnknownNameFirst(t *testing.T) {
	made := 0
	r := NewRegistry(descriptor("foo-controller", aliases("foo"), func(d *Descriptor) {
		d.New = func(context.Context, *Context) (Controller, error) { made++; return fakeController(d.Name), nil }
	}))
	// Build takes the result of Enabled, which never contains an alias.
	for _, name := range []string{"fop-controller", "foo"} {
		if _, err := r.Build(t.Context(), newProcess(t, ""), []string{"foo-controller", name}); err == nil {
			t.Errorf("Build with %q: no error", name)
		}
	}
	if made != 0 {
		t.Errorf("%d controllers were made, want none", made)
	}
}

func doNothing[T Object](context.Context, *Request[T]) error { return nil }
