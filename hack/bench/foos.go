// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// foosNamespace has the Foos without Deployments, shared by all trials of a round.
const foosNamespace = "foos"

const liveHeapPerFoo = "live heap for each Foo, bytes"

// prepareFoos creates Foos without Deployments, and a Lease that nobody gives up. A daemon
// started then is a standby: it caches the Foos and writes nothing.
func prepareFoos(ctx context.Context, h *harness, n int) error {
	if err := h.kubectl(ctx, []string{"create", "namespace", foosNamespace}); err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: daemonName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("bench"), LeaseDurationSeconds: ptr.To(int32((24 * time.Hour).Seconds())), AcquireTime: &now, RenewTime: &now,
		},
	}
	if _, err := h.kube.CoordinationV1().Leases(daemonName).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	return inParallel(ctx, n, func(i int) error { return h.createReadyFoo(ctx, fooName(i)) })
}

// createReadyFoo creates a Foo with the status that it would have with its Deployment.
func (h *harness) createReadyFoo(ctx context.Context, name string) error {
	foos := h.sample.SamplecontrollerV1alpha1().Foos(foosNamespace)
	foo, err := foos.Create(ctx, newFoo(name, 1), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	foo.Status = samplev1alpha1.FooStatus{
		ObservedGeneration: foo.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Selector: "app=nginx,controller=" + name,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: foo.Generation, LastTransitionTime: metav1.Now(),
			Reason: workloadv1alpha1.ReasonAvailable, Message: fmt.Sprintf("Deployment %q has 1 of 1 replicas available", name),
		}},
	}
	_, err = foos.UpdateStatus(ctx, foo, metav1.UpdateOptions{})
	return err
}

// measureFoos measures the memory of a standby that starts with all Foos.
func measureFoos(ctx context.Context, t *trial) (result, error) {
	return t.measure(ctx, func(time.Time) ([]value, error) {
		if err := t.startOn(ctx, "foos.samplecontroller.k8s.io", t.n); err != nil {
			return nil, err
		}
		u, err := t.process.usage()
		if err != nil {
			return nil, err
		}
		heap, err := t.process.liveHeap(ctx)
		return []value{
			{"resident memory, MiB", mebibytes(u.resident)},
			{"live heap, MiB", mebibytes(heap)},
			{liveHeapPerFoo, float64(heap) / float64(t.n)},
		}, errors.Join(err, t.profile(ctx)())
	})
}

// liveHeap returns the size of the heap of a daemon after a garbage collection, in bytes.
func (r *running) liveHeap(ctx context.Context) (size uint64, err error) {
	if _, err := r.page(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	page, err := r.page(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	const metric = "go_memstats_heap_alloc_bytes "
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), metric); ok {
			var bytes float64
			_, err := fmt.Sscan(value, &bytes)
			return uint64(bytes), err
		}
	}
	return 0, fmt.Errorf("/metrics lacks %s", metric)
}
