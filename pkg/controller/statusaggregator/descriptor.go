// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// Descriptor returns the controller's entry in the controller map. It holds the value of a
// flag, so call it once per program.
func Descriptor() controller.Descriptor {
	const flag = "status-aggregation-interval"
	interval := controller.NewLiveDuration(time.Second, 0)
	return controller.Descriptor{
		Name:    "status-aggregator-controller",
		Aliases: []string{"status-aggregator"},
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			return newController(c, interval)
		},
		Workers: 10,
		Flags: func(fs *pflag.FlagSet) {
			fs.Var(interval, flag,
				"Minimum time between two writes of changed Pods into the status of one object. The first change is written at once, and the latest state is always written in the end. 0 writes every change.")
		},
		Validate: func() []error { return interval.Validate(flag) },
	}
}

// summarized is a kind whose objects' Pods the controller summarizes.
type summarized struct {
	controller string // that manages the objects
	resource   schema.GroupResource
	aggregator func(c *controller.Context, interval *controller.LiveDuration) (controller.Controller, error)
}

// kinds are all such kinds.
var kinds = []summarized{
	of(foo.ControllerName, foo.Adapter, "foos"),
	of(icecream.ControllerName, icecream.Adapter, "icecreams"),
}

func of[T controller.Object](name string, adapter workload.Adapter[T], plural string) summarized {
	return summarized{
		controller: name,
		resource:   schema.GroupResource{Group: adapter.GroupVersionKind.Group, Resource: plural},
		aggregator: func(c *controller.Context, interval *controller.LiveDuration) (controller.Controller, error) {
			return newAggregator(c, adapter, plural, interval)
		},
	}
}

// newController returns the controller of all kinds that it serves.
func newController(c *controller.Context, interval *controller.LiveDuration) (controller.Controller, error) {
	var all []controller.Controller
	for _, kind := range served(c.Runs) {
		aggregator, err := kind.aggregator(c, interval)
		if err != nil {
			return nil, err
		}
		all = append(all, aggregator)
	}
	return controller.Join(all...)
}

// served returns the kinds that the controller serves: those whose own controllers are enabled. A
// kind that is disabled may not be installed. Alone, it serves all kinds for another process.
func served(runs func(controller string) bool) []summarized {
	enabled := slices.DeleteFunc(slices.Clone(kinds), func(k summarized) bool { return !runs(k.controller) })
	if len(enabled) == 0 {
		return kinds
	}
	return enabled
}
