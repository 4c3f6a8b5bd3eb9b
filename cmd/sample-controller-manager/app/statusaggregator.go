// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
	"samplecontroller.io/sample-controller-manager/pkg/controller/statusaggregator"
)

func statusAggregatorDescriptor() controller.Descriptor[*ControllerContext] {
	const flag = "status-aggregation-interval"
	interval := time.Second
	return controller.Descriptor[*ControllerContext]{
		Name:    statusaggregator.ControllerName,
		Aliases: []string{"status-aggregator"},
		New: func(_ context.Context, c *ControllerContext) (controller.Controller, error) {
			return newStatusAggregatorController(c, interval)
		},
		Workers: 10,
		Flags: func(fs *pflag.FlagSet) {
			fs.DurationVar(&interval, flag, interval,
				"The least time between two writes of what the Pods of one object say. The first change is written at once, the last one always. 0 means to write each.")
		},
		Validate: func() []error { return options.CheckDuration(flag, interval, 0) },
		Rules: append([]rbacv1.PolicyRule{
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}},
		}, chainRules()...),
	}
}

func newStatusAggregatorController(c *ControllerContext, interval time.Duration) (controller.Controller, error) {
	foos, err := fooClient(c.gated(statusaggregator.ControllerName))
	if err != nil {
		return nil, err
	}
	icecreams, err := icecreamClient(c.gated(statusaggregator.ControllerName))
	if err != nil {
		return nil, err
	}
	return statusaggregator.NewController(
		statusaggregator.Options{
			Informers: c.chain(),
			Interval:  interval,
			Workers:   c.config.Workers[statusaggregator.ControllerName],
			Writes:    c.writesOf(statusaggregator.ControllerName),
			Loop:      c.LoopOptions(statusaggregator.ControllerName),
		},
		statusaggregator.Foos(c.Foos(), foos, c.writtenFoos),
		statusaggregator.Icecreams(c.Icecreams(), icecreams, c.writtenIcecreams),
	)
}
