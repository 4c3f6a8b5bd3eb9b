// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/examples/ops/api"
)

var jobsDeleted = metrics.NewCounter(&metrics.CounterOpts{
	Name: "ops_manager_jobs_deleted_total", Help: "Number of old Jobs deleted.",
})

func init() { legacyregistry.MustRegister(jobsDeleted) }

// jobCollector deletes finished Jobs of a certain age.
func jobCollector() controller.Descriptor {
	ttl := 24 * time.Hour
	return controller.Descriptor{
		Name: "job-collector-controller", Workers: 2,
		Flags: func(fs *pflag.FlagSet) {
			fs.DurationVar(&ttl, "job-ttl", ttl, "How long a finished Job is kept.")
		},
		Validate: func() []error { return controller.CheckDuration("job-ttl", ttl, time.Second) },
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			jobs := controller.For[*batchv1.Job](c, controller.MayDelete())
			return jobs.Reconcile(func(ctx context.Context, r *controller.Request[*batchv1.Job]) error {
				job, ok := r.Object()
				if !ok || api.Finished(job).IsZero() {
					return nil
				}
				if left := time.Until(api.Finished(job).Add(ttl)); left > 0 {
					r.RequeueAfter(left)
					return nil
				}
				if err := r.Delete(ctx); err != nil {
					return err
				}
				jobsDeleted.Inc()
				r.Event(corev1.EventTypeNormal, "Expired", "Deleted %s after its end", ttl)
				return nil
			})
		},
	}
}
