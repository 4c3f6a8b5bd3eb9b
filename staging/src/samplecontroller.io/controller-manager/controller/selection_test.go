// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	genericcontrollermanager "k8s.io/controller-manager/app"
)

// selectable returns a registry with controllers that are on and off by default.
func selectable() *Registry {
	return NewRegistry(
		descriptor("foo-controller", aliases("foo")),
		descriptor("icecream-controller", aliases("icecream", "ice")),
		descriptor("off-controller", aliases("off"), disabledByDefault),
	)
}

func TestSelection(t *testing.T) {
	tests := map[string]struct {
		selection []string
		want      []string
	}{
		"star: all that are on by default": {[]string{"*"}, []string{"foo-controller", "icecream-controller"}},
		"star twice":                       {[]string{"*", "*"}, []string{"foo-controller", "icecream-controller"}},
		"one by its name":                  {[]string{"foo-controller"}, []string{"foo-controller"}},
		"one by an alias":                  {[]string{"foo"}, []string{"foo-controller"}},
		"one by another alias":             {[]string{"ice"}, []string{"icecream-controller"}},
		"one named twice":                  {[]string{"foo", "foo-controller"}, []string{"foo-controller"}},
		"one that is off by default":       {[]string{"off"}, []string{"off-controller"}},
		"several, sorted by name":          {[]string{"icecream", "foo"}, []string{"foo-controller", "icecream-controller"}},
		"star and one off by default":      {[]string{"*", "off"}, []string{"foo-controller", "icecream-controller", "off-controller"}},
		"one off by default, then star":    {[]string{"off", "*"}, []string{"foo-controller", "icecream-controller", "off-controller"}},
		"all but one":                      {[]string{"*", "-foo"}, []string{"icecream-controller"}},
		"all but one, by its name":         {[]string{"*", "-foo-controller"}, []string{"icecream-controller"}},
		"without one, then star":           {[]string{"-foo", "*"}, []string{"icecream-controller"}},
		"without one twice":                {[]string{"*", "-foo", "-foo-controller"}, []string{"icecream-controller"}},
		"without one that is off anyway":   {[]string{"*", "-off"}, []string{"foo-controller", "icecream-controller"}},
		"without one, but with another":    {[]string{"-foo", "off"}, []string{"off-controller"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := selectable()
			got, err := r.Enabled(tc.selection)
			if err != nil {
				t.Fatalf("Enabled(%q): %v", tc.selection, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Enabled(%q) (-want +got):\n%s", tc.selection, diff)
			}
			if diff := cmp.Diff(asInKubeControllerManager(r, tc.selection), got); diff != "" {
				t.Errorf("Enabled(%q) differs from kube-controller-manager (-theirs +ours):\n%s", tc.selection, diff)
			}
		})
	}
}

// asInKubeControllerManager returns the result of kube-controller-manager for the selection.
// Aliases are resolved first, because it does not support them here.
func asInKubeControllerManager(r *Registry, selection []string) []string {
	var canonical []string
	for _, item := range selection {
		given, off := strings.CutPrefix(item, "-")
		if name, ok := r.names[given]; ok {
			given = name
		}
		if off {
			given = "-" + given
		}
		canonical = append(canonical, given)
	}
	enabled := []string{}
	for _, name := range r.Names() {
		if genericcontrollermanager.IsControllerEnabled(name, sets.NewString(r.DisabledByDefault()...), canonical) {
			enabled = append(enabled, name)
		}
	}
	return enabled
}

func TestInvalidSelection(t *testing.T) {
	const known = "known: foo, foo-controller, ice, icecream, icecream-controller, off, off-controller"
	tests := map[string]struct {
		selection []string
		want      string
	}{
		"nothing": {
			nil,
			`"" enables no controller: use * for all, or name at least one of foo-controller, icecream-controller, off-controller`,
		},
		"only disabled ones": {
			[]string{"-foo"},
			`"-foo" disables controllers but enables none: use *,-foo to enable all others`,
		},
		"only disabled ones, several": {
			[]string{"-foo", "-ice"},
			`"-foo,-ice" disables controllers but enables none: use *,-foo,-ice to enable all others`,
		},
		"all disabled one by one": {
			[]string{"*", "-foo", "-icecream"},
			`"*,-foo,-icecream" enables no controller: use * for all, or name at least one of foo-controller, icecream-controller, off-controller`,
		},
		"named both ways": {
			[]string{"foo", "-foo"},
			`foo-controller is both enabled and disabled: name it once, for example *,-foo-controller to enable all others`,
		},
		"named both ways by name and alias": {
			[]string{"*", "-ice", "icecream-controller"},
			`icecream-controller is both enabled and disabled: name it once, for example *,-icecream-controller to enable all others`,
		},
		"unknown": {
			[]string{"deployment"},
			`"deployment" is not a known controller (` + known + `)`,
		},
		"unknown, one letter wrong": {
			[]string{"fop"},
			`"fop" is not a known controller (` + known + `)`,
		},
		"unknown, two letters swapped": {
			[]string{"*", "-iceceram"},
			`"iceceram" is not a known controller (` + known + `)`,
		},
		"unknown, with a space": {
			[]string{"foo", " off"},
			`" off" is not a known controller (` + known + `)`,
		},
		"unknown, the wrong case": {
			[]string{"Foo-Controller"},
			`"Foo-Controller" is not a known controller (` + known + `)`,
		},
		"empty, after a trailing comma": {
			[]string{"foo", ""},
			"an item is empty: remove the extra comma",
		},
		"a single letter": {
			[]string{"x"},
			`"x" is not a known controller (` + known + `)`,
		},
		"disabled star": {
			[]string{"-*"},
			`"-*" is not supported: name the controllers to enable, or use *,-foo-controller`,
		},
		"several errors": {
			[]string{"foo", "fop", "-foo", "bar"},
			`["fop" is not a known controller (` + known + `), ` +
				`foo-controller is both enabled and disabled: name it once, for example *,-foo-controller to enable all others, ` +
				`"bar" is not a known controller (` + known + `)]`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := selectable().Enabled(tc.selection)
			if err == nil {
				t.Fatalf("Enabled(%q) = %q, want an error", tc.selection, got)
			}
			if got != nil {
				t.Errorf("Enabled(%q) = %q with an error, want nil", tc.selection, got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("Enabled(%q) error (-want +got):\n%s", tc.selection, diff)
			}
		})
	}
}

// For any selection, the result is either an error, or a non-empty set of controllers that
// kube-controller-manager also enables.
func TestSelectionOfRandomItems(t *testing.T) {
	r := selectable()
	words := append(r.known(), "*", "-", "--", "", " ", "-*", "**", "fo", "nöt-ä-controller", "\x00", "-foo,-off")
	random := rand.New(rand.NewPCG(1, 2))
	rejected, accepted := 0, 0
	for range 20000 {
		var selection []string
		for range random.IntN(5) {
			word := words[random.IntN(len(words))]
			if random.IntN(3) == 0 {
				word = "-" + word
			}
			selection = append(selection, word)
		}
		got, err := r.Enabled(selection)
		if err != nil {
			rejected++
			continue
		}
		accepted++
		if len(got) == 0 {
			t.Errorf("Enabled(%q) enables nothing, want an error", selection)
		}
		if diff := cmp.Diff(asInKubeControllerManager(r, selection), got); diff != "" {
			t.Errorf("Enabled(%q) differs from kube-controller-manager (-theirs +ours):\n%s", selection, diff)
		}
	}
	if rejected == 0 || accepted == 0 {
		t.Errorf("%d selections were rejected and %d accepted, want some of both", rejected, accepted)
	}
}

func FuzzSelection(f *testing.F) {
	for _, seed := range []string{"", "*", "foo,-foo", "-", ",", "fop", "*,-ice,off"} {
		f.Add(seed)
	}
	r := selectable()
	f.Fuzz(func(t *testing.T, flag string) {
		got, err := r.Enabled(strings.Split(flag, ","))
		if (err == nil) != (len(got) > 0) {
			t.Errorf("Enabled of %q = %q, %v: want either an error or names", flag, got, err)
		}
	})
}

func TestResolve(t *testing.T) {
	r := selectable()
	for given, want := range map[string]string{"foo": "foo-controller", "foo-controller": "foo-controller", "ice": "icecream-controller", "off": "off-controller"} {
		if got, err := r.Resolve(given); got != want || err != nil {
			t.Errorf("Resolve(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
	for given, want := range map[string]string{"fo": "(known: ", "*": "known: ", "": "known: "} {
		if got, err := r.Resolve(given); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q) = %q, %v, want an error with %q", given, got, err, want)
		}
	}
}
