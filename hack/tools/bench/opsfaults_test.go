// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the programs do in the faults below.
const (
	othersWork   = "the other controllers work"
	processStays = "the process stays"
)

// withoutCRD starts the program before the CRD of Backups is there, and notes whether it serves its
// other kinds.
func (r *opsRun) withoutCRD() {
	r.start()
	r.label("early", "true")
	r.wait("the program ends or serves Namespaces", func(ctx context.Context) error {
		select {
		case <-r.process.Done():
			r.notes["without CRD"] = fmt.Sprintf("the process exits with %d", r.process.ExitCode())
			return nil
		default:
		}
		err := r.user.Get(ctx, client.ObjectKey{Namespace: r.namespace + "-early", Name: "ops-defaults"}, &corev1.ResourceQuota{})
		if err == nil {
			r.notes["without CRD"] = othersWork
			r.stop()
		}
		return err
	})
	r.label("early", "false")
	for _, object := range []client.Object{&corev1.ResourceQuota{}, &networkingv1.NetworkPolicy{}} {
		r.must(r.user.DeleteAllOf(r.Context(), object, client.InNamespace(r.namespace+"-early")))
	}
}

// loseLease gives the Lease to another holder, and notes whether the program still writes, and what
// becomes of it.
func (r *opsRun) loseLease() {
	r.must(r.user.Patch(r.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
		Name: "ops-manager"}},
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"holderIdentity":"another","renewTime":%q}}`,
			time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))))
	r.label("late", "true")
	began, wrote := time.Now(), "writes nothing while another holds the Lease"
	r.wait("the program ends or leads again", func(ctx context.Context) error {
		after := time.Since(began).Round(time.Second)
		select {
		case <-r.process.Done():
			r.notes["lost Lease"] = fmt.Sprintf("%s; the process exits with %d after %v", wrote, r.process.ExitCode(), after)
			return nil
		default:
		}
		var lease coordinationv1.Lease
		err := errors.Join(
			r.user.Get(ctx, client.ObjectKey{Namespace: r.namespace + "-late", Name: "ops-defaults"}, &corev1.ResourceQuota{}),
			r.user.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "ops-manager"}, &lease))
		switch holder := lease.Spec.HolderIdentity; {
		case err == nil && *holder == "another":
			wrote = "writes while another holds the Lease"
			return errors.New("the program has written without the Lease")
		case err == nil:
			r.notes["lost Lease"] = fmt.Sprintf("%s; %s and leads again after %v", wrote, processStays, after)
			r.stop()
		}
		return err
	})
}
