// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// workloadOptions returns what a controller that keeps Deployments is made of.
func workloadOptions[T workload.Object](c *ControllerContext, name string, objects cache.TypedSharedIndexInformer[T], written *reconcile.Written) (workload.Options[T], error) {
	client, err := c.kubeClient(name)
	if err != nil {
		return workload.Options[T]{}, err
	}
	if err := processMetrics().undecodable.Watch(name, objects); err != nil {
		return workload.Options[T]{}, err
	}
	return workload.Options[T]{
		Objects:     objects,
		Deployments: c.Deployments(),
		Client:      client.AppsV1(),
		Writes:      c.writesOf(name),
		Written:     written,
		Recorder:    c.recorder(name),
		Workers:     c.config.Workers[name],
		Loop:        c.LoopOptions(name),
	}, nil
}

// chainRules are the permissions to read what is between a Deployment and its Pods.
func chainRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
}
