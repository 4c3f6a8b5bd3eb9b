// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

type fakeController string

func (c fakeController) Name() string              { return string(c) }
func (c fakeController) Run(context.Context) error { return nil }

// descriptor returns a valid descriptor.
func descriptor(name string, change ...func(*Descriptor)) Descriptor {
	d := Descriptor{
		Name:    name,
		New:     func(context.Context, *Context) (Controller, error) { return fakeController(name), nil },
		Workers: 1,
	}
	for _, f := range change {
		f(&d)
	}
	return d
}

func aliases(names ...string) func(*Descriptor) {
	return func(d *Descriptor) { d.Aliases = names }
}

func disabledByDefault(d *Descriptor) { d.DisabledByDefault = true }

func TestNewRegistryPanics(t *testing.T) {
	long := strings.Repeat("x", 63-len("-controller"))
	tests := map[string]struct {
		descriptors []Descriptor
		wantPanic   string // empty: none
	}{
		"valid": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("foo"))},
		},
		"several, valid": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("foo")), descriptor("bar-controller", aliases("bar", "baz"))},
		},
		"name of maximum length": {
			descriptors: []Descriptor{descriptor(long + "-controller")},
		},
		"no name": {
			descriptors: []Descriptor{descriptor("")},
			wantPanic:   `registering controller "": its name must end in "-controller"`,
		},
		"name without the suffix": {
			descriptors: []Descriptor{descriptor("foo")},
			wantPanic:   `registering controller "foo": its name must end in "-controller"`,
		},
		"only the suffix": {
			descriptors: []Descriptor{descriptor("-controller")},
			wantPanic:   `registering controller "-controller": its name must end in "-controller"`,
		},
		"upper case": {
			descriptors: []Descriptor{descriptor("Foo-controller")},
			wantPanic:   `registering controller "Foo-controller": "Foo-controller" is not a DNS label`,
		},
		"first letter a digit": {
			descriptors: []Descriptor{descriptor("1foo-controller")},
			wantPanic:   `registering controller "1foo-controller": "1foo-controller" is not a DNS label`,
		},
		"underscore": {
			descriptors: []Descriptor{descriptor("foo_bar-controller")},
			wantPanic:   `registering controller "foo_bar-controller": "foo_bar-controller" is not a DNS label`,
		},
		"name with a line break": {
			descriptors: []Descriptor{descriptor("foo\n-controller")},
			wantPanic:   `registering controller "foo\n-controller": "foo\n-controller" is not a DNS label`,
		},
		"name too long": {
			descriptors: []Descriptor{descriptor("x" + long + "-controller")},
			wantPanic:   fmt.Sprintf(`registering controller "x%[1]s-controller": "x%[1]s-controller" is not a DNS label`, long),
		},
		"no constructor": {
			descriptors: []Descriptor{descriptor("foo-controller", func(d *Descriptor) { d.New = nil })},
			wantPanic:   `registering controller "foo-controller": it has no constructor`,
		},
		"no workers": {
			descriptors: []Descriptor{descriptor("foo-controller", func(d *Descriptor) { d.Workers = 0 })},
			wantPanic:   `registering controller "foo-controller": it has 0 workers: set Workers of its Descriptor, for example to 1`,
		},
		"negative workers": {
			descriptors: []Descriptor{descriptor("foo-controller", func(d *Descriptor) { d.Workers = -1 })},
			wantPanic:   `registering controller "foo-controller": it has -1 workers: set Workers of its Descriptor, for example to 1`,
		},
		"empty alias": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases(""))},
			wantPanic:   `registering controller "foo-controller": "" is not a DNS label`,
		},
		"alias that would switch off": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("-foo"))},
			wantPanic:   `registering controller "foo-controller": "-foo" is not a DNS label`,
		},
		"alias that would mean all": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("*"))},
			wantPanic:   `registering controller "foo-controller": "*" is not a DNS label`,
		},
		"the same name twice": {
			descriptors: []Descriptor{descriptor("foo-controller"), descriptor("foo-controller")},
			wantPanic:   `registering controller "foo-controller": "foo-controller" is taken by "foo-controller"`,
		},
		"alias that is its own name": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("foo-controller"))},
			wantPanic:   `registering controller "foo-controller": "foo-controller" is taken by "foo-controller"`,
		},
		"the same alias twice": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("foo")), descriptor("bar-controller", aliases("foo"))},
			wantPanic:   `registering controller "bar-controller": "foo" is taken by "foo-controller"`,
		},
		"alias that is the name of another": {
			descriptors: []Descriptor{descriptor("foo-controller"), descriptor("bar-controller", aliases("foo-controller"))},
			wantPanic:   `registering controller "bar-controller": "foo-controller" is taken by "foo-controller"`,
		},
		"name that is the alias of another": {
			descriptors: []Descriptor{descriptor("foo-controller", aliases("bar-controller")), descriptor("bar-controller")},
			wantPanic:   `registering controller "bar-controller": "bar-controller" is taken by "foo-controller"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			func() {
				defer func() {
					if value := recover(); value != nil {
						got = fmt.Sprint(value)
					}
				}()
				NewRegistry(tc.descriptors...)
			}()
			if got != tc.wantPanic {
				t.Errorf("NewRegistry panicked with\n%q, want\n%q", got, tc.wantPanic)
			}
		})
	}
}

func TestRegistryIsSortedByName(t *testing.T) {
	r := NewRegistry(
		descriptor("c-controller"),
		descriptor("a-controller", disabledByDefault),
		descriptor("b-controller", disabledByDefault),
	)
	if diff := cmp.Diff([]string{"a-controller", "b-controller", "c-controller"}, r.Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a-controller", "b-controller"}, r.DisabledByDefault()); diff != "" {
		t.Errorf("DisabledByDefault (-want +got):\n%s", diff)
	}
	var described []string
	for _, d := range r.Descriptors() {
		described = append(described, d.Name)
	}
	if diff := cmp.Diff(r.Names(), described); diff != "" {
		t.Errorf("Descriptors (-want +got):\n%s", diff)
	}
}

func TestRegistryReturnsCopies(t *testing.T) {
	r := NewRegistry(descriptor("a-controller"), descriptor("b-controller"))
	r.Descriptors()[0] = descriptor("x-controller")
	r.Names()[0] = "x-controller"
	if diff := cmp.Diff([]string{"a-controller", "b-controller"}, r.Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
}

func TestWorkers(t *testing.T) {
	r := NewRegistry(
		descriptor("a-controller", func(d *Descriptor) { d.Workers = 3 }),
		descriptor("b-controller", func(d *Descriptor) { d.Workers = 5 }),
	)
	for name, want := range map[string]int{"a-controller": 3, "b-controller": 5, "unknown-controller": 0} {
		if got := r.Workers(name); got != want {
			t.Errorf("Workers(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestDuplicateFlagPanics(t *testing.T) {
	flag := func(d *Descriptor) { d.Flags = func(fs *pflag.FlagSet) { fs.Int("size", 1, "") } }
	r := NewRegistry(descriptor("bar-controller", flag), descriptor("foo-controller", flag))
	defer func() {
		if got, want := fmt.Sprint(recover()), `adding flags of foo-controller: --size is already in section "bar-controller"`; got != want {
			t.Errorf("panic %s, want %s", got, want)
		}
	}()
	r.AddFlags(&cliflag.NamedFlagSets{})
}
