// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command quota is the library's quota example on controller-runtime. It keeps a ResourceQuota
// for each ConfigMap labelled example.com/quota=true, and greets each Greeting.
package main

import (
	"context"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	greeting := flag.String("greeting", "Hello", "The first word of a Greeting's message.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*greeting); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		os.Exit(1)
	}
}

func run(greeting string) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	selected := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"example.com/quota": "true"})}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: "quota-manager",
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: selected}},
	})
	if err != nil {
		return err
	}
	workers := controller.Options{MaxConcurrentReconciles: 2}
	quotas := &quotaReconciler{manager.GetClient(), manager.GetEventRecorder("quota-controller")}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.ResourceQuota{}).WithOptions(workers).Complete(quotas); err != nil {
		return err
	}
	greeter := &greetingReconciler{manager.GetClient(), greeting}
	if err := ctrl.NewControllerManagedBy(manager).For(&Greeting{}).WithOptions(workers).Complete(greeter); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type quotaReconciler struct {
	client.Client
	events.EventRecorder
}

func (r *quotaReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &configMap); err != nil { // gone, or no longer labelled
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		err := r.Get(ctx, request.NamespacedName, quota)
		if owner := metav1.GetControllerOfNoCopy(quota); err != nil || owner == nil || owner.Kind != "ConfigMap" {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, quota, client.Preconditions{UID: &quota.UID}))
	}
	pods, err := resource.ParseQuantity(configMap.Data["pods"])
	if err != nil {
		r.Eventf(&configMap, nil, corev1.EventTypeWarning, "BadData", "Sync", "data[pods]: %v", err)
		return ctrl.Result{}, nil
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, quota, func() error {
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
		return controllerutil.SetControllerReference(&configMap, quota, r.Scheme())
	})
	return ctrl.Result{}, err
}

type greetingReconciler struct {
	client.Client
	greeting string
}

func (r *greetingReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, request.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	message := r.greeting + ", " + greeting.Spec.Name + "!"
	if greeting.Status.Message == message {
		return ctrl.Result{}, nil
	}
	greeting.Status.Message = message
	return ctrl.Result{}, r.Status().Update(ctx, &greeting)
}
