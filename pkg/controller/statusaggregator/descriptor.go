// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
)

// Descriptor returns the controller's entry in the controller map. It holds the value of a
// flag, so call it once per program.
func Descriptor() controller.Descriptor {
	const flag = "status-aggregation-interval"
	interval := time.Second
	return controller.Descriptor{
		Name:    ControllerName,
		Aliases: []string{"status-aggregator"},
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			return newFromContext(c, interval)
		},
		Workers: 10,
		Flags: func(fs *pflag.FlagSet) {
			fs.DurationVar(&interval, flag, interval,
				"Minimum time between two writes of the Pod summary of one object. The first change is written at once, and the latest state is always written in the end. 0 writes every change.")
		},
		Validate: func() []error { return controller.CheckDuration(flag, interval, 0) },
		Rules:    rules(true, true),
		RulesWith: func(enabled []string) []rbacv1.PolicyRule {
			return rules(served(func(name string) bool { return slices.Contains(enabled, name) }))
		},
	}
}

// served returns which kinds the controller serves: those whose own controllers are enabled. A
// kind that is disabled may not be installed. Alone, it serves both for another process.
func served(runs func(controller string) bool) (foos, icecreams bool) {
	foos, icecreams = runs(kinds.FooController), runs(kinds.IcecreamController)
	if !foos && !icecreams {
		return true, true
	}
	return foos, icecreams
}

func rules(foos, icecreams bool) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	if foos {
		all = append(all,
			rbacv1.PolicyRule{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status"}, Verbs: []string{"patch"}})
	}
	if icecreams {
		all = append(all,
			rbacv1.PolicyRule{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams"}, Verbs: []string{"list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/status"}, Verbs: []string{"patch"}})
	}
	all = append(all, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}})
	return append(all, kinds.ChainRules()...)
}

func newFromContext(c *controller.Context, interval time.Duration) (controller.Controller, error) {
	chain, err := kinds.Chain(c)
	if err != nil {
		return nil, err
	}
	var loops []KindOptions
	foos, icecreams := served(c.Runs)
	if foos {
		client, err := kinds.FooClient(c.ClientConfig())
		if err != nil {
			return nil, err
		}
		informer, err := kinds.Foos(c)
		if err != nil {
			return nil, err
		}
		loops = append(loops, Foos(informer, client, c.ConsistencyStore(samplev1alpha1.Resource("foos"))))
	}
	if icecreams {
		client, err := kinds.IcecreamClient(c.ClientConfig())
		if err != nil {
			return nil, err
		}
		informer, err := kinds.Icecreams(c)
		if err != nil {
			return nil, err
		}
		loops = append(loops, Icecreams(informer, client, c.ConsistencyStore(icecreamv1alpha1.Resource("icecreams"))))
	}
	return NewController(
		Options{Informers: chain, Interval: interval, Recorder: c.Recorder(), Writes: c.Writes(), Loop: c.LoopOptions()}, loops...)
}
