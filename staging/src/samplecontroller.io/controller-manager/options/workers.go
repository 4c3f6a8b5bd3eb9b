// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
)

// WorkersOptions say how many syncs each controller runs at once.
type WorkersOptions struct {
	// Counts by controller name.
	Counts map[string]*int

	registry *controller.Registry
}

func newWorkersOptions(registry *controller.Registry) *WorkersOptions {
	o := &WorkersOptions{Counts: map[string]*int{}, registry: registry}
	for _, name := range registry.Names() {
		workers := registry.Workers(name)
		o.Counts[name] = &workers
	}
	return o
}

// flag returns the name of the flag: --concurrent-foo-syncs for foo-controller.
func (o *WorkersOptions) flag(name string) string {
	return "concurrent-" + strings.TrimSuffix(name, "-controller") + "-syncs"
}

// addFlags adds the flag of each controller to the controller's own section.
func (o *WorkersOptions) addFlags(fss *cliflag.NamedFlagSets) {
	for _, name := range o.registry.Names() {
		fss.FlagSet(name).IntVar(o.Counts[name], o.flag(name), *o.Counts[name],
			"The number of objects that "+name+" is allowed to sync concurrently. Larger number = more responsive, but more CPU (and network) load.")
	}
}

// most is how many workers of a controller there may be: each is a goroutine, and many
// times as many as connections to the API server do not help.
const most = 10_000

func (o *WorkersOptions) validate() []error {
	var errs []error
	for _, name := range o.registry.Names() {
		switch count := *o.Counts[name]; {
		case count < 1:
			errs = append(errs, fmt.Errorf("--%s: %d is too few, must be at least 1; to switch the controller off write --controllers=*,-%s", o.flag(name), count, name))
		case count > most:
			errs = append(errs, fmt.Errorf("--%s: %d is too many, must be at most %d", o.flag(name), count, most))
		}
	}
	return errs
}
