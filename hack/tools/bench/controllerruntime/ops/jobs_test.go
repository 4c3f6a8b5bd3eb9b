// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOldJobIsDeleted(t *testing.T) {
	e := newEnv(t)
	r := &jobReconciler{Client: e, events: e.events, ttl: time.Hour}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "old"}}
	e.must(e.user.Create(t.Context(), job))
	e.reconcile(r, "jobs", "old", "running")

	finish := func(ago time.Duration) {
		ended := metav1.NewTime(time.Now().Add(-ago))
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: ended}}
		e.must(e.user.Status().Update(t.Context(), job))
	}
	finish(0)
	if left := e.reconcile(r, "jobs", "old", "finished").RequeueAfter; left <= 0 || left > time.Hour {
		t.Errorf("requeued after %v, want at most an hour", left)
	}
	finish(2 * time.Hour)
	e.reconcile(r, "jobs", "old", "old", "delete old")
	e.expectEvents("Normal Expired Deleted 1h0m0s after its end")
}
