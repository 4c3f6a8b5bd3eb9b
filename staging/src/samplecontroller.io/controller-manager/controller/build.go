// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/component-base/featuregate"
)

// AllowedBy returns the named controllers whose required feature gates are all enabled, in the
// order of names.
func (r *Registry) AllowedBy(gates featuregate.FeatureGate, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		d, _ := r.descriptor(name)
		return slices.ContainsFunc(d.RequiredFeatureGates, func(f featuregate.Feature) bool { return !gates.Enabled(f) })
	})
}

// Build makes the named controllers, sorted by name, with the resources of p. It stops at the
// first error.
func (r *Registry) Build(ctx context.Context, p *Process, names []string) ([]Controller, error) {
	for _, name := range names {
		if _, ok := r.descriptor(name); !ok {
			return nil, r.unknown(name)
		}
	}
	p.enabled = slices.Clone(names)
	var controllers []Controller
	for _, d := range r.descriptors {
		if !slices.Contains(names, d.Name) {
			continue
		}
		c := p.context(d, r.statusGroups())
		built, err := d.New(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", d.Name, err)
		}
		if built == nil {
			return nil, fmt.Errorf("building %s: its constructor returned no controller", d.Name)
		}
		if got := built.Name(); got != d.Name {
			return nil, fmt.Errorf("building %s: its constructor returned a controller named %q: the controller and its loop must have the name of the descriptor", d.Name, got)
		}
		if c.unsynced != 0 {
			return nil, fmt.Errorf("building %s: each kind given to For needs one call of Sync, which sets the sync function", d.Name)
		}
		controllers = append(controllers, built)
	}
	return controllers, nil
}

// descriptor returns the descriptor of the named controller.
func (r *Registry) descriptor(name string) (Descriptor, bool) {
	i := slices.IndexFunc(r.descriptors, func(d Descriptor) bool { return d.Name == name })
	if i < 0 {
		return Descriptor{}, false
	}
	return r.descriptors[i], true
}
