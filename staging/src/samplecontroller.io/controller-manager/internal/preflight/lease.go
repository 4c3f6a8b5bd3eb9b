// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Lease is the Lease of the leader election.
type Lease struct {
	Namespace, Name string
	// Timing explains the durations of the election.
	Timing string
	// Elsewhere says what to do if the Lease probably belongs in another namespace. Optional.
	Elsewhere string
}

// advice returns what to do, to be added to a message.
func (l *Lease) advice() string {
	if l.Elsewhere == "" {
		return ""
	}
	return "; " + l.Elsewhere
}

// checkLease checks that the Lease exists, or that it can be created.
func (c *checker) checkLease(ctx context.Context) {
	const check = "Lease"
	c.report.add(check, OK, "%s", c.Lease.Timing)
	key := c.Lease.Namespace + "/" + c.Lease.Name
	leases := c.client.CoordinationV1().Leases(c.Lease.Namespace)
	lease, err := leases.Get(ctx, c.Lease.Name, metav1.GetOptions{})
	if err == nil {
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
			c.report.add(check, OK, "%s is held by %s", key, holder)
		} else {
			c.report.add(check, OK, "%s is free", key)
		}
		return
	}
	lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.Lease.Name}}
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		c.report.add(check, OK, "%s can be created", key)
	case apierrors.IsAlreadyExists(err):
		c.report.add(check, OK, "%s exists", key)
	case apierrors.IsForbidden(err) && slices.ContainsFunc(c.missing, func(p Permission) bool { return p.Resource == "leases" }):
		c.report.add(check, SKIP, "%s cannot be tried without the permissions for it%s", key, c.Lease.advice())
	case apierrors.IsNotFound(err):
		c.report.add(check, FAIL, "%s cannot be created: %v; create the namespace, or set another --leader-elect-resource-namespace", key, err)
	default:
		c.report.add(check, FAIL, "%s cannot be created: %v%s", key, err, c.Lease.advice())
	}
}
