// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
)

// Descriptor returns the controller's entry in the controller map.
func Descriptor() controller.Descriptor {
	return controller.Descriptor{
		Name:    ControllerName,
		Aliases: []string{"icecream"},
		New:     newFromContext,
		Workers: 10,
		Rules: append([]rbacv1.PolicyRule{
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/finalizers"}, Verbs: []string{"update"}}, // as for Foos
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "patch"}},
		}, kinds.ChainRules()...),
	}
}

func newFromContext(ctx context.Context, c *controller.Context) (controller.Controller, error) {
	client, err := kinds.IcecreamClient(c.ClientConfig())
	if err != nil {
		return nil, err
	}
	icecreams, err := kinds.Icecreams(c)
	if err != nil {
		return nil, err
	}
	chain, err := kinds.Chain(c)
	if err != nil {
		return nil, err
	}
	o, err := kinds.WorkloadOptions(c, icecreamv1alpha1.Resource("icecreams"), icecreams)
	if err != nil {
		return nil, err
	}
	return NewController(ctx, client, o, chain, c.RecorderFor(placementSource))
}
