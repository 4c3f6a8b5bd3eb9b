// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
)

func icecreamDescriptor() controller.Descriptor[*ControllerContext] {
	return controller.Descriptor[*ControllerContext]{
		Name:    icecream.ControllerName,
		Aliases: []string{"icecream"},
		New:     newIcecreamController,
		Workers: 10,
		Rules: append([]rbacv1.PolicyRule{
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"controller.nicoleh.io"}, Resources: []string{"icecreams/finalizers"}, Verbs: []string{"update"}}, // as for Foos
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}},
		}, chainRules()...),
	}
}

func newIcecreamController(ctx context.Context, c *ControllerContext) (controller.Controller, error) {
	client, err := icecreamClient(c.gated(icecream.ControllerName))
	if err != nil {
		return nil, err
	}
	o, err := workloadOptions(c, icecream.ControllerName, c.Icecreams(), c.writtenIcecreams)
	if err != nil {
		return nil, err
	}
	return icecream.NewController(ctx, client, o, c.chain())
}
