// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
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

func TestBuildErrorNamesController(t *testing.T) {
	broken := errors.New("no such thing")
	r := NewRegistry(descriptor("foo-controller"), descriptor("bar-controller", func(d *Descriptor) {
		d.New = func(context.Context, *Context) (Controller, error) { return nil, broken }
	}))
	controllers, err := r.Build(t.Context(), newProcess(t, ""), r.Names())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "building bar-controller") {
		t.Errorf("Build: error %v, want one that wraps %v and names bar-controller", err, broken)
	}
	if controllers != nil {
		t.Errorf("Build returned %v with an error", names(controllers))
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

func TestAllowedByFeatureGates(t *testing.T) {
	const open, closed featuregate.Feature = "Open", "Closed"
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{open: {Default: true}, closed: {Default: false}}); err != nil {
		t.Fatal(err)
	}
	requires := func(features ...featuregate.Feature) func(*Descriptor) {
		return func(d *Descriptor) { d.RequiredFeatureGates = features }
	}
	r := NewRegistry(
		descriptor("none-controller"),
		descriptor("open-controller", requires(open)),
		descriptor("closed-controller", requires(closed)),
		descriptor("both-controller", requires(open, closed)),
	)

	all := r.Names()
	if diff := cmp.Diff([]string{"none-controller", "open-controller"}, r.AllowedBy(gates, all)); diff != "" {
		t.Errorf("AllowedBy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"open-controller"}, r.AllowedBy(gates, []string{"open-controller", "closed-controller"})); diff != "" {
		t.Errorf("AllowedBy of two (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.Names(), all); diff != "" {
		t.Errorf("AllowedBy changed its argument (-want +got):\n%s", diff)
	}
}
