// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/internal/misuse"
)

// namePattern is the pattern of names and aliases.
var namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// nameSuffix distinguishes the name of a controller from that of a kind.
const nameSuffix = "-controller"

// Registry is the controller map of a program. It is safe for concurrent use once the flags
// are parsed. It serves one command, because its descriptors hold flag values. Package manager makes
// it from Program.Controllers.
type Registry struct {
	descriptors []Descriptor
	names       map[string]string // from name or alias to name
}

// NewRegistry returns the registry of the given controllers, sorted by name.
//
// It panics if a descriptor is incomplete, or if a name or alias is malformed or already in
// use. That is a programming error, which shows at the first start and in any test that calls
// NewRegistry.
func NewRegistry(descriptors ...Descriptor) *Registry {
	r := &Registry{names: map[string]string{}}
	for _, d := range descriptors {
		r.register(d)
	}
	slices.SortFunc(r.descriptors, func(a, b Descriptor) int { return strings.Compare(a.Name, b.Name) })
	return r
}

func (r *Registry) register(d Descriptor) {
	mustf(len(d.Name) > len(nameSuffix) && strings.HasSuffix(d.Name, nameSuffix),
		"registering controller %q: its name must end in %q", d.Name, nameSuffix)
	mustf(d.New != nil, "registering controller %q: it has no constructor", d.Name)
	mustf(d.Workers > 0, "registering controller %q: it has %d workers: set Workers of its Descriptor, for example to 1",
		d.Name, d.Workers)
	for _, name := range append([]string{d.Name}, d.Aliases...) {
		mustf(namePattern.MatchString(name) && len(name) <= 63, "registering controller %q: %q is not a DNS label", d.Name, name)
		taken, clash := r.names[name]
		mustf(!clash, "registering controller %q: %q is taken by %q", d.Name, name, taken)
		r.names[name] = d.Name
	}
	r.descriptors = append(r.descriptors, d)
}

func mustf(ok bool, format string, args ...any) {
	if !ok {
		panic(misuse.Errorf(format, args...))
	}
}

// Descriptors returns the descriptors of all controllers, sorted by name.
func (r *Registry) Descriptors() []Descriptor { return slices.Clone(r.descriptors) }

// Names returns the names of all controllers, sorted.
func (r *Registry) Names() []string {
	return r.collect(func(Descriptor) bool { return true })
}

// DisabledByDefault returns the names of the controllers that "*" does not enable, sorted.
func (r *Registry) DisabledByDefault() []string {
	return r.collect(func(d Descriptor) bool { return d.DisabledByDefault })
}

// Resolve returns the name of the controller with this name or alias. If there is none, the
// error lists the known ones.
func (r *Registry) Resolve(given string) (name string, err error) {
	name, ok := r.names[given]
	if !ok {
		return "", r.unknown(given)
	}
	return name, nil
}

// Workers returns the default number of concurrent syncs of the named controller, 0 if the name is not
// known.
func (r *Registry) Workers(name string) int {
	d, _ := r.descriptor(name)
	return d.Workers
}

// AddFlags adds the flags of each controller to the section named after it. It panics if another
// section has a flag of the same name or letter, because pflag would silently ignore one of the two,
// or panic. It does not see flags that are added later: call it last, and once.
func (r *Registry) AddFlags(sections *cliflag.NamedFlagSets) {
	for _, d := range r.descriptors {
		if d.Flags == nil {
			continue
		}
		own := sections.FlagSet(d.Name)
		d.Flags(own)
		own.VisitAll(func(f *pflag.Flag) {
			for section, flags := range sections.FlagSets {
				if section == d.Name {
					continue
				}
				mustf(flags.Lookup(f.Name) == nil, "adding flags of %s: --%s is already in section %q", d.Name, f.Name, section)
				mustf(f.Shorthand == "" || flags.ShorthandLookup(f.Shorthand) == nil,
					"adding flags of %s: -%s is already in section %q", d.Name, f.Shorthand, section)
			}
		})
	}
}

// Validate returns one error for each invalid value of the flags of all controllers, none if all are
// valid. Call it when the flags are parsed.
func (r *Registry) Validate() []error {
	var errs []error
	for _, d := range r.descriptors {
		if d.Validate != nil {
			errs = append(errs, d.Validate()...)
		}
	}
	return errs
}

func (r *Registry) collect(want func(Descriptor) bool) []string {
	names := []string{}
	for _, d := range r.descriptors {
		if want(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// known returns all names and aliases, sorted.
func (r *Registry) known() []string { return slices.Sorted(maps.Keys(r.names)) }
