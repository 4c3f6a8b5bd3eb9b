// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"samplecontroller.io/controller-manager/examples/ops/api"
)

var jobsDeleted = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "ops_manager_jobs_deleted_total", Help: "Number of old Jobs deleted.",
})

func init() { metrics.Registry.MustRegister(jobsDeleted) }

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// jobReconciler deletes finished Jobs of a certain age.
type jobReconciler struct {
	client.Client
	events events.EventRecorder
	ttl    time.Duration
}

func (r *jobReconciler) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&batchv1.Job{}).Complete(r)
}

func (r *jobReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job batchv1.Job
	if err := r.Get(ctx, request.NamespacedName, &job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	end := api.Finished(&job)
	if end.IsZero() || !job.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := time.Until(end.Add(r.ttl)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	err := r.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	jobsDeleted.Inc()
	r.events.Eventf(&job, nil, corev1.EventTypeNormal, "Expired", "Delete", "Deleted %s after its end", r.ttl)
	return ctrl.Result{}, nil
}
