// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/live"
)

// WorkersOptions holds the number of workers of each controller, which can change while the process runs.
type WorkersOptions struct {
	// Counts maps the name of a controller to its number of workers.
	Counts map[string]*live.Value[int]

	registry *controller.Registry
}

func newWorkersOptions(registry *controller.Registry) *WorkersOptions {
	o := &WorkersOptions{Counts: map[string]*live.Value[int]{}, registry: registry}
	for _, name := range registry.Names() {
		check := func(count int) error { return checkWorkers(name, count) }
		o.Counts[name] = live.New(live.Int(), registry.Workers(name), check)
	}
	return o
}

// Of returns the number of workers of the named controller.
func (o *WorkersOptions) Of(name string) int { return o.Counts[name].Get() }

// flag returns the controller's flag, such as concurrent-foo-syncs for foo-controller.
func (o *WorkersOptions) flag(name string) string {
	return "concurrent-" + strings.TrimSuffix(name, "-controller") + "-syncs"
}

// addFlags adds each controller's flag to its section.
func (o *WorkersOptions) addFlags(fss *cliflag.NamedFlagSets) {
	for _, name := range o.registry.Names() {
		fss.FlagSet(name).Var(o.Counts[name], o.flag(name),
			"The number of objects of each kind that "+name+" is allowed to sync concurrently. Larger number = more responsive, but more CPU (and network) load.")
	}
}

// maxWorkers limits the workers of one controller. Each is a goroutine, and far more workers
// than connections to the API server do not help.
const maxWorkers = 10_000

func checkWorkers(name string, count int) error {
	switch {
	case count < 1:
		return fmt.Errorf("%d is too few, must be at least 1; to disable the controller use --controllers=*,-%s", count, name)
	case count > maxWorkers:
		return fmt.Errorf("%d is too many, must be at most %d", count, maxWorkers)
	}
	return nil
}

func (o *WorkersOptions) validate() []error {
	var errs []error
	for _, name := range o.registry.Names() {
		errs = append(errs, named("--"+o.flag(name), o.Counts[name].Check())...)
	}
	return errs
}
