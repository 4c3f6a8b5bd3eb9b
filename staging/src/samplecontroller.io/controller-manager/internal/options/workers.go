// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
)

// WorkersOptions holds the number of concurrent syncs of each controller.
type WorkersOptions struct {
	// Counts maps the name of a controller to its number of workers.
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

// Of returns the number of workers of the named controller.
func (o *WorkersOptions) Of(name string) int { return *o.Counts[name] }

// flag returns the controller's flag, such as concurrent-foo-syncs for foo-controller.
func (o *WorkersOptions) flag(name string) string {
	return "concurrent-" + strings.TrimSuffix(name, "-controller") + "-syncs"
}

// addFlags adds each controller's flag to its section.
func (o *WorkersOptions) addFlags(fss *cliflag.NamedFlagSets) {
	for _, name := range o.registry.Names() {
		fss.FlagSet(name).IntVar(o.Counts[name], o.flag(name), *o.Counts[name],
			"The number of objects of each kind that "+name+" is allowed to sync concurrently. Larger number = more responsive, but more CPU (and network) load.")
	}
}

// maxWorkers limits the workers of one controller. Each is a goroutine, and far more workers
// than connections to the API server do not help.
const maxWorkers = 10_000

func (o *WorkersOptions) validate() []error {
	var errs []error
	for _, name := range o.registry.Names() {
		switch count := *o.Counts[name]; {
		case count < 1:
			errs = append(errs, fmt.Errorf("--%s: %d is too few, must be at least 1; to disable the controller use --controllers=*,-%s", o.flag(name), count, name))
		case count > maxWorkers:
			errs = append(errs, fmt.Errorf("--%s: %d is too many, must be at most %d", o.flag(name), count, maxWorkers))
		}
	}
	return errs
}
