// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
)

// Descriptor returns the controller's entry in the controller map.
func Descriptor() controller.Descriptor {
	return controller.Descriptor{
		Name:    ControllerName,
		Aliases: []string{"foo"},
		New:     newFromContext,
		Workers: 10,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status"}, Verbs: []string{"patch"}},
			// Not for requests: the Deployment's owner reference has blockOwnerDeletion,
			// which the admission plugin OwnerReferencesPermissionEnforcement allows only
			// with this permission.
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "patch"}},
		},
	}
}

func newFromContext(_ context.Context, c *controller.Context) (controller.Controller, error) {
	client, err := kinds.FooClient(c.ClientConfig())
	if err != nil {
		return nil, err
	}
	foos, err := kinds.Foos(c)
	if err != nil {
		return nil, err
	}
	o, err := kinds.WorkloadOptions(c, samplev1alpha1.Resource("foos"), foos)
	if err != nil {
		return nil, err
	}
	return NewController(client, o)
}
