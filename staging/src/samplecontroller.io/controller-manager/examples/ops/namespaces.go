// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"samplecontroller.io/controller-manager/controller"
)

const defaultsLabel = "ops.example.org/defaults"
const quotaName, policyName = "ops-defaults", "ops-default-deny"

// namespaceDefaults keeps a ResourceQuota and a NetworkPolicy in each labeled Namespace.
func namespaceDefaults() controller.Descriptor {
	pods := int64(50)
	return controller.Descriptor{
		Name: "namespace-defaults-controller", Workers: 2,
		Flags: func(fs *pflag.FlagSet) {
			fs.Int64Var(&pods, "default-pods", pods, "Limit of Pods in a namespace with defaults.")
		},
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
			namespaces := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
			quotas := controller.Owns[*corev1.ResourceQuota](namespaces, controller.MayDelete())
			policies := controller.Owns[*networkingv1.NetworkPolicy](namespaces, controller.MayDelete())
			return namespaces.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.Namespace]) error {
				namespace, ok := r.Object()
				if !ok {
					return nil // its objects are deleted with it
				}
				quotas, policies := quotas.In(namespace.Name), policies.In(namespace.Name)
				if namespace.Labels[defaultsLabel] != "true" {
					return errors.Join(quotas.Delete(ctx, r, quotaName), policies.Delete(ctx, r, policyName))
				}
				_, quotaErr := quotas.Ensure(ctx, r, quotaName, func(q *corev1.ResourceQuota) {
					q.Spec.Hard = hard.DeepCopy()
				})
				_, policyErr := policies.Ensure(ctx, r, policyName, func(p *networkingv1.NetworkPolicy) {
					p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
				})
				return errors.Join(quotaErr, policyErr)
			})
		},
	}
}
