// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestLateWritesAreUndone holds a write of a leader until another replica leads, and then
// releases it: no client can take back what it has sent. If the next leader has written the
// same object, the API server rejects the write. Otherwise it succeeds, and the next leader
// sees and reverts it.
func TestLateWritesAreUndone(t *testing.T) {
	ns := framework.NewNamespace(t)
	f := startFleet(t, 2, true, shortFaults...)
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)

	late := f.holdScaling(ns, "a", 2, 3)
	if code := late.release(); code != http.StatusConflict {
		t.Errorf("late write of an object that the next leader has written: status %d, want 409", code)
	}
	framework.Foos.WaitReady(t, ns, "a", 3)
	late.leader.thaw()
	late.leader.Ready()

	late = f.holdScaling(ns, "a", 5, 3)
	began := time.Now()
	if code := late.release(); code != http.StatusOK {
		t.Errorf("late write of an unchanged object: status %d, want 200", code)
	}
	clustertest.WaitUntil(t, "the late write is reverted", func(context.Context) error {
		if got := *framework.Deployment(t, ns, "a").Spec.Replicas; got != 3 {
			return fmt.Errorf("the Deployment has %d replicas", got)
		}
		return nil
	})
	t.Logf("the late write was reverted after %v", time.Since(began))
	framework.Foos.WaitReady(t, ns, "a", 3)
	late.leader.thaw()

	flapping := framework.StartFlapping(t, framework.NewNamespace(t), 20)
	leader := f.waitLeader()
	leader.partition()
	f.waitLeader(leader)
	leader.heal()
	f.waitServed()
	flapping.End(t)
	r := f.wantNoViolations()
	t.Logf("found:\n%s", r)
	if !slices.ContainsFunc(r.Held, func(event auditv1.Event) bool { return event.AuditID == late.id }) {
		t.Error("the late write is not counted")
	}
}

// lateWrite is a write of a former leader that is still in transit.
type lateWrite struct {
	leader  *member
	id      types.UID // in the audit log
	release func() (code int)
}

// holdScaling changes a Foo's replicas, holds the leader's scaling of its Deployment, and
// changes the replicas again, so that the next leader must scale the Deployment.
func (f *fleet) holdScaling(ns, name string, first, then int) lateWrite {
	f.t.Helper()
	leader := f.waitLeader()
	hold := leader.proxy.Hold(framework.ScalesDeployment(ns, name))
	framework.Foos.Patch(f.t, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, first))
	framework.WaitClosed(f.t, "the leader writes", hold.Arrived())
	leader.freeze()
	framework.Foos.Patch(f.t, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, then))
	f.waitLeader(leader)
	framework.Foos.WaitReady(f.t, ns, name, then)
	return lateWrite{
		leader: leader,
		id:     hold.AuditID(),
		release: func() int {
			code, err := hold.Release(f.t.Context())
			if err != nil {
				f.t.Fatal(err)
			}
			return code
		},
	}
}
