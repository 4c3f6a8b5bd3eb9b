// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllerruntime reconciles Foos like the daemon, but with controller-runtime. It
// follows controller-runtime's documentation and kubebuilder's scaffold, with default settings
// and as many workers as the daemon.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

func main() {
	namespace := flag.String("leader-elect-namespace", "", "The namespace of the Lease. (default no leader election)")
	flag.Parse() // controller-runtime has defined -kubeconfig
	ctrl.SetLogger(zap.New())
	if err := run(*namespace); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		os.Exit(1)
	}
}

func run(leaseNamespace string) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(samplev1alpha1.AddToScheme(scheme))
	rest, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	elect := leaseNamespace != ""
	manager, err := ctrl.NewManager(rest, manager.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"}, // the usual port may be taken
		// Elections at their best: the standby's caches are full, and the leader releases the Lease.
		LeaderElection:                elect,
		LeaderElectionID:              "controllerruntime",
		LeaderElectionNamespace:       leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{MaxConcurrentReconciles: 10, EnableWarmup: &elect},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&samplev1alpha1.Foo{}).Owns(&appsv1.Deployment{}).
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
	var foo samplev1alpha1.Foo
	if err := r.Get(ctx, request.NamespacedName, &foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !foo.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	key := metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	deployment := &appsv1.Deployment{ObjectMeta: key}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		fill(deployment, &foo)
		return controllerutil.SetControllerReference(&foo, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	old := foo.Status.DeepCopy()
	setStatus(&foo, deployment)
	if equality.Semantic.DeepEqual(*old, foo.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, &foo)
}

// fill makes the same Deployment as the daemon.
func fill(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if deployment.ResourceVersion == "" {
		labels := map[string]string{"app": "nginx", "controller": foo.Name}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
		}
	}
	deployment.Spec.Replicas = foo.Spec.Replicas
}

// setStatus sets the status of kubebuilder's tutorial: counts, and a condition Available.
func setStatus(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) {
	wanted, is, status := *deployment.Spec.Replicas, deployment.Status, &foo.Status
	status.ObservedGeneration = foo.Generation
	status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	status.Replicas, status.ReadyReplicas = is.Replicas, is.ReadyReplicas
	status.AvailableReplicas = is.AvailableReplicas
	available := metav1.Condition{
		Type: "Available", Status: metav1.ConditionFalse, Reason: "Reconciling", ObservedGeneration: foo.Generation,
		Message: fmt.Sprintf("Deployment %s has %d of %d replicas available", deployment.Name, is.AvailableReplicas, wanted),
	}
	if is.ObservedGeneration >= deployment.Generation && is.AvailableReplicas == wanted {
		available.Status, available.Reason = metav1.ConditionTrue, "Available"
	}
	meta.SetStatusCondition(&status.Conditions, available)
}
