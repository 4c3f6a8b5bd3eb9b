// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// WorkloadOptions returns the options of a controller that manages Deployments for the
// objects of a resource.
func WorkloadOptions[T workload.Object](c *controller.Context, resource schema.GroupResource, objects cache.TypedSharedIndexInformer[T]) (workload.Options[T], error) {
	client, err := appsv1client.NewForConfig(c.ClientConfig())
	if err != nil {
		return workload.Options[T]{}, fmt.Errorf("creating client for Deployments: %w", err)
	}
	deployments, err := Deployments(c)
	if err != nil {
		return workload.Options[T]{}, err
	}
	return workload.Options[T]{
		Objects:     objects,
		Deployments: deployments,
		Client:      client,
		Writes:      c.Writes(),
		Consistency: c.ConsistencyStore(resource),
		Recorder:    c.Recorder(),
		CountStates: func(states []controller.State, stateOf func(any) controller.State) {
			c.CountObjects(resource, objects, states, stateOf)
		},
		Loop: c.LoopOptions(),
	}, nil
}

// ChainRules returns the permissions that [Chain] needs, except those for Deployments.
func ChainRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
}
