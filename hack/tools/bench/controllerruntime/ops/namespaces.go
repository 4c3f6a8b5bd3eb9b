// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const defaultsLabel = "ops.example.org/defaults"
const quotaName, policyName = "ops-defaults", "ops-default-deny"

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=list;watch;create;update;delete

// namespaceReconciler keeps a ResourceQuota and a NetworkPolicy in each labeled Namespace.
type namespaceReconciler struct {
	client.Client
	pods int64
}

func (r *namespaceReconciler) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&corev1.Namespace{}).
		Owns(&corev1.ResourceQuota{}).Owns(&networkingv1.NetworkPolicy{}).Complete(r)
}

func (r *namespaceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, request.NamespacedName, &namespace); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // its objects are deleted with it
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: quotaName}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: policyName}}
	if namespace.Labels[defaultsLabel] != "true" {
		return ctrl.Result{}, errors.Join(r.remove(ctx, &namespace, quota), r.remove(ctx, &namespace, policy))
	}
	_, quotaErr := controllerutil.CreateOrUpdate(ctx, r.Client, quota, func() error {
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(r.pods, resource.DecimalSI)}
		return controllerutil.SetControllerReference(&namespace, quota, r.Scheme())
	})
	_, policyErr := controllerutil.CreateOrUpdate(ctx, r.Client, policy, func() error {
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		return controllerutil.SetControllerReference(&namespace, policy, r.Scheme())
	})
	return ctrl.Result{}, errors.Join(quotaErr, policyErr)
}

// remove deletes an object if the Namespace owns it.
func (r *namespaceReconciler) remove(ctx context.Context, owner *corev1.Namespace, object client.Object) error {
	if err := r.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(object, owner) {
		return nil
	}
	uid := object.GetUID()
	return client.IgnoreNotFound(r.Delete(ctx, object, client.Preconditions{UID: &uid}))
}
