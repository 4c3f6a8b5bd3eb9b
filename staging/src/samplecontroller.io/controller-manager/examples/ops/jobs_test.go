// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/examples/ops/vault"
	"samplecontroller.io/controller-manager/managertest"
)

func TestOldJobIsDeleted(t *testing.T) {
	run(t, &vault.Fake{}, func(t *testing.T, e *managertest.Env) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "old"}}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		e.Create(job)
		e.Settle()
		expect(t, "running", e.Writes())
		managertest.Update(e, "jobs", "old", func(j *batchv1.Job) {
			now := metav1.Now()
			j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
			j.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: "True", LastTransitionTime: now},
				{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: now},
			}
		})
		e.Settle()
		expect(t, "finished", e.Writes())
		time.Sleep(6 * time.Second)
		e.Settle()
		expect(t, "old", e.Writes(), "delete jobs.batch jobs/old")
		expect(t, "Events", e.Events(), "Normal Expired Deleted 5s after its end")
	}, "--controllers=job-collector-controller", "--namespace=jobs", "--job-ttl=5s")
}
