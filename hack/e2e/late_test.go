// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// healsWithin is how soon what a late write has changed is put right.
const healsWithin = 5 * time.Second

// TestLateWritesAreHealed holds a write of a leader until another leads, and then lets
// it go: no client can take back what it has sent. If the next leader has written the
// same object, the API server refuses it; if not, it is made, seen and undone.
func TestLateWritesAreHealed(t *testing.T) {
	ns := newNamespace(t)
	d := startDaemons(t, 2, true)
	foos.create(t, ns, "a", 1)
	foos.waitReady(t, ns, "a", 1)

	late := d.holdScaling(ns, "a", 2, 3)
	if code := late.release(); code != http.StatusConflict {
		t.Errorf("a late write of what the next leader has written is answered with %d, want 409", code)
	}
	foos.waitReady(t, ns, "a", 3)
	late.leader.thaw()
	d.replicas[late.leader.program].ready()

	late = d.holdScaling(ns, "a", 5, 3)
	began := time.Now()
	if code := late.release(); code != http.StatusOK {
		t.Errorf("a late write of what nobody has written is answered with %d, want 200", code)
	}
	waitUntil(t, "the late write is undone", func(context.Context) error {
		if got := *deployment(t, ns, "a").Spec.Replicas; got != 3 {
			return fmt.Errorf("the Deployment has %d replicas", got)
		}
		return nil
	})
	if took := time.Since(began); took > healsWithin {
		t.Errorf("the late write was undone after %v, want within %v", took, healsWithin)
	}
	foos.waitReady(t, ns, "a", 3)
	late.leader.thaw()

	storm := startStorm(t, newNamespace(t), 20)
	leader := d.waitLeader()
	healed(d.fleet, leader)
	d.waitServed()
	storm.end(t)
	r := d.check()
	t.Logf("found:\n%s", r)
	if len(r.Violations) > 0 {
		t.Error("there are violations")
	}
	if !slices.ContainsFunc(r.Held, func(event auditv1.Event) bool { return event.AuditID == late.id }) {
		t.Error("the late write is not counted")
	}
}

// lateWrite is a write of a former leader that is still on its way.
type lateWrite struct {
	leader  *member
	id      types.UID // in the audit log
	release func() (code int)
}

// holdScaling changes a Foo's replicas, holds the leader's scaling of its Deployment, and
// changes them again so that the next leader has that to do.
func (d *daemonFleet) holdScaling(ns, name string, first, then int) lateWrite {
	d.t.Helper()
	leader := d.waitLeader()
	hold := leader.proxy.Hold(scales(ns, name))
	foos.patch(d.t, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, first))
	waitClosed(d.t, "the leader writes", hold.Arrived())
	leader.freeze()
	foos.patch(d.t, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, then))
	d.waitLeader(leader)
	foos.waitReady(d.t, ns, name, then)
	return lateWrite{
		leader: leader,
		id:     hold.AuditID(),
		release: func() int {
			code, err := hold.Release(d.t.Context())
			if err != nil {
				d.t.Fatal(err)
			}
			return code
		},
	}
}

// scales matches the request by which the daemon scales a Deployment.
func scales(ns, name string) func(r *http.Request, body []byte) bool {
	return func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/namespaces/"+ns+"/deployments/"+name+"/scale")
	}
}
