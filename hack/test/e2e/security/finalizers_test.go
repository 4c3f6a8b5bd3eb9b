// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestFinalizersGrantIsNeeded revokes a right that the daemon never uses in a request. An
// admission plugin requires it of clients that create an object which blocks the deletion of
// its owner.
func TestFinalizersGrantIsNeeded(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.ExpectDenials(t, func(event auditv1.Event) bool {
		return strings.Contains(event.ResponseStatus.Message, "cannot set blockOwnerDeletion")
	})
	framework.FreeLease(t)
	grant := framework.RevokeFromDaemon(t, framework.Foos.May("update", "/finalizers"))
	r := framework.StartReplica(t).Ready()
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitSays(t, ns, "a", "Stalled", "WriteDenied", "cannot set blockOwnerDeletion")
	grant()
	framework.Foos.WaitReady(t, ns, "a", 1)
	r.Stop()
}
