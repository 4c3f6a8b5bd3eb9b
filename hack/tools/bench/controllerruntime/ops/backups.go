// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/examples/ops/vault"
)

const finalizer = "ops.example.org/vault"
const sourceIndex = "spec.source"

// +kubebuilder:rbac:groups=ops.example.org,resources=backups,verbs=list;watch;update
// +kubebuilder:rbac:groups=ops.example.org,resources=backups/status;backups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=list;watch;create;update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// backupReconciler registers each Backup with the vault, and keeps a CronJob that copies its claim.
type backupReconciler struct {
	client.Client
	events events.EventRecorder
	vault  vault.Client
}

func (r *backupReconciler) setup(manager ctrl.Manager) error {
	err := manager.GetFieldIndexer().IndexField(context.Background(), &api.Backup{}, sourceIndex, sourceOf)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).For(&api.Backup{}).Owns(&batchv1.CronJob{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.backupsOf)).Complete(r)
}

func sourceOf(backup client.Object) []string { return []string{backup.(*api.Backup).Spec.Source} }

// backupsOf returns the Backups of a claim.
func (r *backupReconciler) backupsOf(ctx context.Context, claim client.Object) (requests []ctrl.Request) {
	var backups api.BackupList
	err := r.List(ctx, &backups, client.InNamespace(claim.GetNamespace()),
		client.MatchingFields{sourceIndex: claim.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Backups of a claim")
	}
	for i := range backups.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&backups.Items[i])})
	}
	return requests
}

func (r *backupReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var backup api.Backup
	if err := r.Get(ctx, request.NamespacedName, &backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, &backup)
	}
	if controllerutil.AddFinalizer(&backup, finalizer) {
		if err := r.Update(ctx, &backup); err != nil {
			return ctrl.Result{}, err
		}
	}
	old := backup.DeepCopy()
	reason, err := r.schedule(ctx, &backup)
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Scheduled", ObservedGeneration: backup.Generation}
	if err != nil {
		ready.Status, ready.Reason, ready.Message = "False", reason, err.Error()
	}
	if meta.SetStatusCondition(&backup.Status.Conditions, ready) && err != nil {
		r.events.Eventf(&backup, nil, corev1.EventTypeWarning, reason, "Reconcile", "%v", err)
	}
	backup.Status.ObservedGeneration = backup.Generation
	if !equality.Semantic.DeepEqual(old.Status, backup.Status) {
		if err := r.Status().Update(ctx, &backup); err != nil {
			return ctrl.Result{}, err
		}
	}
	switch {
	case err != nil && reason == "SourceMissing":
		return ctrl.Result{}, nil // a change of the claim enqueues the Backup
	case err != nil && reason == "VaultFailed":
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	return ctrl.Result{}, err
}

func (r *backupReconciler) schedule(ctx context.Context, backup *api.Backup) (reason string, err error) {
	if backup.Status.VaultGeneration != backup.Generation {
		if err := r.vault.Put(ctx, client.ObjectKeyFromObject(backup), backup.Spec.Retention); err != nil {
			return "VaultFailed", err
		}
		backup.Status.VaultGeneration = backup.Generation
	}
	var claim corev1.PersistentVolumeClaim
	err = r.Get(ctx, client.ObjectKey{Namespace: backup.Namespace, Name: backup.Spec.Source}, &claim)
	if client.IgnoreNotFound(err) != nil {
		return "ClaimFailed", err
	}
	if err != nil {
		return "SourceMissing", fmt.Errorf("there is no claim %q", backup.Spec.Source)
	}
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: "backup-" + backup.Name}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, cronJob, func() error {
		r.configure(cronJob, backup)
		return controllerutil.SetControllerReference(backup, cronJob, r.Scheme())
	})
	if err == nil {
		backup.Status.LastScheduleTime = cronJob.Status.LastScheduleTime
	}
	return "CronJobFailed", err
}

// configure sets what the Backup determines, and leaves the API server's defaults alone.
func (r *backupReconciler) configure(j *batchv1.CronJob, b *api.Backup) {
	j.Spec.Schedule, j.Spec.ConcurrencyPolicy = b.Spec.Schedule, batchv1.ForbidConcurrent
	pod := &j.Spec.JobTemplate.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyNever
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container := &pod.Containers[0]
	container.Name, container.Image = "backup", "example.org/backup:1"
	container.Args = []string{"--to=" + r.vault.URL(), "--as=" + b.Namespace + "/" + b.Name}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "source", MountPath: "/source", ReadOnly: true}}
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.Spec.Source, ReadOnly: true}
	pod.Volumes = []corev1.Volume{{Name: "source", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
}

// finalize cleans up in the vault, then lets the Backup go.
func (r *backupReconciler) finalize(ctx context.Context, backup *api.Backup) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(backup, finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.vault.Delete(ctx, client.ObjectKeyFromObject(backup)); err != nil {
		r.events.Eventf(backup, nil, corev1.EventTypeWarning, "VaultFailed", "Finalize", "%v", err)
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	controllerutil.RemoveFinalizer(backup, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, backup))
}
