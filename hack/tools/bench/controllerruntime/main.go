// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllerruntime reconciles Foos like the daemon, but with controller-runtime. It
// follows controller-runtime's documentation and kubebuilder's scaffold, with default settings
// and as many workers as the daemon.
package main

import (
	"context"
	"flag"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/tools/bench/foo"
)

func main() {
	flag.Parse() // controller-runtime has defined -kubeconfig
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(samplev1alpha1.AddToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, manager.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"}, // the usual port may be taken
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&samplev1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		Named("foo").
		WithOptions(controller.Options{MaxConcurrentReconciles: foo.Workers}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// reconciler keeps the Deployments of Foos.
type reconciler struct {
	client.Client
}

// Reconcile writes one Foo's Deployment if it differs, then its status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object samplev1alpha1.Foo
	if err := r.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace,
		Name: object.Spec.DeploymentName}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		foo.Fill(deployment, &object)
		return controllerutil.SetControllerReference(&object, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	status := conditionStatus(&object, deployment)
	if equality.Semantic.DeepEqual(object.Status, status) {
		return ctrl.Result{}, nil
	}
	object.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, &object)
}
