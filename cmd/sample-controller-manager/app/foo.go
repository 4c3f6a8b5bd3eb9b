// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
)

func fooDescriptor() controller.Descriptor[*ControllerContext] {
	return controller.Descriptor[*ControllerContext]{
		Name:    foo.ControllerName,
		Aliases: []string{"foo"},
		New:     newFooController,
		Workers: 10,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status"}, Verbs: []string{"patch"}},
			// Never a request: a Deployment's owner reference blocks the deletion of
			// its Foo, which OwnerReferencesPermissionEnforcement allows only so.
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}},
		},
	}
}

func newFooController(_ context.Context, c *ControllerContext) (controller.Controller, error) {
	client, err := fooClient(c.gated(foo.ControllerName))
	if err != nil {
		return nil, err
	}
	o, err := workloadOptions(c, foo.ControllerName, c.Foos(), c.writtenFoos)
	if err != nil {
		return nil, err
	}
	return foo.NewController(client, o)
}
