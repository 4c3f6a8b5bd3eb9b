// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
)

// backups registers each Backup with the vault, and keeps a CronJob that copies its claim.
func backups(transport http.RoundTripper) controller.Descriptor {
	address := "http://127.0.0.1:8200"
	return controller.Descriptor{
		Name: "backup-controller", Workers: 2,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&address, "vault-url", address, "URL of the API that keeps backups.")
		},
		Validate: func() []error {
			if u, err := url.Parse(address); err != nil || u.Host == "" {
				return []error{fmt.Errorf("--vault-url: %q is not a URL", address)}
			}
			return nil
		},
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			backups := controller.For[*Backup](c, controller.MayPatchStatus())
			b := backupController{
				vault:    vault{address, &http.Client{Transport: transport, Timeout: 5 * time.Second}},
				cronJobs: controller.Owns[*batchv1.CronJob](backups),
				claims: controller.Refers[*corev1.PersistentVolumeClaim](backups, func(b *Backup) []string {
					return []string{b.Spec.Source}
				}),
			}
			backups.Finalize("ops.example.org/vault", func(ctx context.Context, r *controller.Request[*Backup]) error {
				return controller.RetryAfter("VaultFailed", b.vault.delete(ctx, r.Key()), time.Minute)
			})
			return backups.Reconcile(b.reconcile)
		},
	}
}

type backupController struct {
	vault    vault
	cronJobs *controller.Owned[*batchv1.CronJob, *Backup]
	claims   *controller.Reader[*corev1.PersistentVolumeClaim]
}

func (c backupController) reconcile(ctx context.Context, r *controller.Request[*Backup]) error {
	b, ok := r.Object()
	if !ok {
		return nil
	}
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Scheduled", ObservedGeneration: b.Generation}
	reason, err := c.schedule(ctx, r, b)
	if err != nil {
		ready.Status, ready.Reason, ready.Message = "False", reason, err.Error()
	}
	meta.SetStatusCondition(&b.Status.Conditions, ready)
	b.Status.ObservedGeneration = b.Generation
	return errors.Join(err, r.UpdateStatus(ctx, b))
}

func (c backupController) schedule(ctx context.Context, r *controller.Request[*Backup], b *Backup) (string, error) {
	if b.Status.VaultGeneration != b.Generation {
		if err := c.vault.put(ctx, r.Key(), b.Spec.Retention); err != nil {
			return "VaultFailed", controller.RetryAfter("VaultFailed", err, time.Minute)
		}
		b.Status.VaultGeneration = b.Generation
	}
	if _, ok := c.claims.Get(b.Namespace, b.Spec.Source); !ok {
		return "SourceMissing", controller.UserError("SourceMissing", fmt.Errorf("there is no claim %q", b.Spec.Source))
	}
	cronJob, err := c.cronJobs.Ensure(ctx, r, "backup-"+b.Name, func(j *batchv1.CronJob) { c.configure(j, b) })
	if err == nil {
		b.Status.LastScheduleTime = cronJob.Status.LastScheduleTime
	}
	return "CronJobFailed", err
}

// configure sets what the Backup determines, and leaves the API server's defaults alone.
func (c backupController) configure(j *batchv1.CronJob, b *Backup) {
	j.Spec.Schedule, j.Spec.ConcurrencyPolicy = b.Spec.Schedule, batchv1.ForbidConcurrent
	pod := &j.Spec.JobTemplate.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyNever
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container := &pod.Containers[0]
	container.Name, container.Image = "backup", "example.org/backup:1"
	container.Args = []string{"--to=" + c.vault.url, "--as=" + b.Namespace + "/" + b.Name}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "source", MountPath: "/source", ReadOnly: true}}
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.Spec.Source, ReadOnly: true}
	pod.Volumes = []corev1.Volume{{Name: "source", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
}
