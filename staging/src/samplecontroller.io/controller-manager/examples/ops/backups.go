// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/examples/ops/vault"
)

// backups registers each Backup with the vault, and keeps a CronJob that copies its claim.
func backups(transport http.RoundTripper) controller.Descriptor {
	address := "http://127.0.0.1:8200"
	return controller.Descriptor{
		Name: "backup-controller", Workers: 2,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&address, "vault-url", address, "URL of the API that keeps backups.")
		},
		Validate: func() []error { return vault.Validate("vault-url", address) },
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			client := vault.New(address, transport)
			if c.DryRun() {
				client = client.WithoutWrites() // plan must not change the vault
			}
			return newBackups(c, client)
		},
	}
}

func newBackups(c *controller.Context, v vault.Client) (controller.Controller, error) {
	backups := controller.For[*api.Backup](c, controller.MayPatchStatus())
	cronJobs := controller.Owns[*batchv1.CronJob](backups)
	claims := controller.Refers[*corev1.PersistentVolumeClaim](backups, func(b *api.Backup) []string {
		return []string{b.Spec.Source}
	})
	backups.Finalize("ops.example.org/vault", func(ctx context.Context, r *controller.Request[*api.Backup]) error {
		return controller.RetryAfter("VaultFailed", v.Delete(ctx, r.Key()), time.Minute)
	})
	schedule := func(ctx context.Context, r *controller.Request[*api.Backup], b *api.Backup) (string, error) {
		if b.Status.VaultGeneration != b.Generation {
			if err := v.Put(ctx, r.Key(), b.Spec.Retention); err != nil {
				return "VaultFailed", controller.RetryAfter("VaultFailed", err, time.Minute)
			}
			b.Status.VaultGeneration = b.Generation
		}
		if _, ok := claims.Get(b.Namespace, b.Spec.Source); !ok {
			return "SourceMissing", controller.UserError("SourceMissing", fmt.Errorf("there is no claim %q", b.Spec.Source))
		}
		cronJob, err := cronJobs.Ensure(ctx, r, "backup-"+b.Name, func(j *batchv1.CronJob) { configure(j, b, v.URL()) })
		if err == nil {
			b.Status.LastScheduleTime = cronJob.Status.LastScheduleTime
		}
		return "CronJobFailed", err
	}
	return backups.Reconcile(func(ctx context.Context, r *controller.Request[*api.Backup]) error {
		b, ok := r.Object()
		if !ok {
			return nil
		}
		reason, err := schedule(ctx, r, b)
		ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Scheduled", ObservedGeneration: b.Generation}
		if err != nil {
			ready.Status, ready.Reason, ready.Message = "False", reason, err.Error()
		}
		meta.SetStatusCondition(&b.Status.Conditions, ready)
		b.Status.ObservedGeneration = b.Generation
		return errors.Join(err, r.UpdateStatus(ctx, b))
	})
}

// configure sets what the Backup determines, and leaves the API server's defaults alone.
func configure(j *batchv1.CronJob, b *api.Backup, vaultURL string) {
	j.Spec.Schedule, j.Spec.ConcurrencyPolicy = b.Spec.Schedule, batchv1.ForbidConcurrent
	pod := &j.Spec.JobTemplate.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyNever
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container := &pod.Containers[0]
	container.Name, container.Image = "backup", "example.org/backup:1"
	container.Args = []string{"--to=" + vaultURL, "--as=" + b.Namespace + "/" + b.Name}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "source", MountPath: "/source", ReadOnly: true}}
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.Spec.Source, ReadOnly: true}
	pod.Volumes = []corev1.Volume{{Name: "source", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
}
