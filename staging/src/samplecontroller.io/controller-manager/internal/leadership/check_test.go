// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStandbyAndLeaderAreHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		leader.run(untilTheEnd)
		standby.run(untilTheEnd)
		for range 100 {
			pass(time.Second)
			for _, c := range []*candidate{leader, standby} {
				if err := c.Check(nil); err != nil {
					t.Errorf("Check of the %s: %v", c.client.identity, err)
				}
			}
		}
		for _, c := range []*candidate{leader, standby} {
			c.stop()
			if err := c.wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
}

func TestStandbyWithoutAPIServerIsHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.put("leader")
		standby := newCandidate(t, server, "standby")
		standby.run(never(t))
		pass(time.Second)
		standby.client.cutOff()
		pass(time.Hour)
		if err := standby.Check(nil); err != nil {
			t.Errorf("Check: %v", err)
		}
		standby.stop()
		if err := standby.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// Only a restart fixes an elector that neither renews nor notices that it cannot.
func TestStuckElectorIsUnhealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		stuck := make(chan struct{})
		a.client.beforeEach(func(context.Context, string) error {
			<-stuck
			return errUnreachable
		})
		pass(leaseDuration + watchdogTolerance)
		if err := a.Check(nil); err != nil {
			t.Errorf("Check before the tolerance is used up: %v", err)
		}
		pass(retryPeriod)
		if err := a.Check(nil); err == nil {
			t.Error("Check succeeds although the elector is stuck")
		}

		close(stuck)
		a.client.cutOff()
		pass(time.Minute)
		if err := a.Check(nil); err != nil {
			t.Errorf("Check when it is no longer stuck: %v", err)
		}
		a.end(t)
	})
}

// After a lost term the Lease may still name the process until it is written again.
func TestLostTermIsHealthy(t *testing.T) {
	tests := map[string]func(a *candidate, server *apiServer){
		"one write fails and another process leads": func(a *candidate, server *apiServer) {
			a.client.cutOff()
			pass(validity + retryPeriod)
			var failed atomic.Bool
			a.client.beforeEach(func(_ context.Context, verb string) error {
				if verb == "update" && failed.CompareAndSwap(false, true) {
					return errUnreachable
				}
				return nil
			})
			for !failed.Load() {
				pass(10 * time.Millisecond)
			}
			server.put("b")
		},
		"all writes fail": func(a *candidate, _ *apiServer) {
			a.client.beforeEach(func(_ context.Context, verb string) error {
				if verb == "update" {
					return apierrors.NewForbidden(coordinationv1.Resource("leases"), "lease", nil)
				}
				return nil
			})
		},
	}
	for name, happen := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a := newCandidate(t, server, "a")
				a.run(untilTheEnd)
				pass(time.Minute)
				happen(a, server)
				for range 10 * time.Minute / time.Second {
					pass(time.Second)
					if server.holder() == "b" {
						server.put("b") // renews
					}
					if err := a.Check(nil); err != nil {
						t.Fatalf("Check of a process that does not lead: %v", err)
					}
				}
				a.end(t)
			})
		})
	}
}

func TestDrainAfterLostLeaseIsHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			for drained := time.Now().Add(time.Hour); time.Now().Before(drained); time.Sleep(time.Minute) {
				if err := a.Check(nil); err != nil {
					t.Errorf("Check while the work drains: %v", err)
				}
			}
			return nil
		})
		a.client.cutOff()
		pass(2 * time.Hour)
		a.end(t)
	})
}

func TestCheckName(t *testing.T) {
	if got := newCandidate(t, &apiServer{}, "a").Name(); got != "leaderElection" {
		t.Errorf("Name = %q, want leaderElection", got)
	}
}

// events records Events as lines.
type events struct {
	mutex sync.Mutex
	lines []string
}

func (e *events) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	lease := object.(*coordinationv1.Lease)
	e.lines = append(e.lines, strings.Join([]string{lease.Namespace + "/" + lease.Name, string(lease.UID), eventType,
		reason, fmt.Sprintf(format, args...)}, " "))
}

func TestLeadershipEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		var recorder events
		a := newCandidate(t, server, "a", func(c *Config) { c.Recorder = &recorder })
		server.put("")
		server.edit(func(l *coordinationv1.Lease) { l.UID = "uid" }) // kubectl describe finds Events by the UID
		a.run(untilTheEnd)
		pass(time.Minute)
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		want := []string{"default/lease uid Normal LeaderElection a became leader", "default/lease uid Normal LeaderElection a stopped leading"}
		if diff := cmp.Diff(want, recorder.lines); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
}
