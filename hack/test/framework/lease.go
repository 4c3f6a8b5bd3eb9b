// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// LeaseDuration is the duration of [ShortLease].
const LeaseDuration = 6 * time.Second

// IsWrite matches requests that write.
func IsWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// CurrentLease returns the daemon's Lease, empty if there is none.
func CurrentLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := Kube().CoordinationV1().Leases(DaemonName).Get(t.Context(), DaemonName, metav1.GetOptions{})
	if err != nil {
		return &coordinationv1.Lease{}
	}
	return lease
}
