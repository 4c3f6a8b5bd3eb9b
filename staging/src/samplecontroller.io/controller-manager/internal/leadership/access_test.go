// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

var leases = coordinationv1.Resource("leases")

// fails returns a hook that fails requests of the verbs.
func fails(err error, verbs ...string) hook {
	return func(_ context.Context, verb string) error {
		if slices.Contains(verbs, verb) {
			return err
		}
		return nil
	}
}

// hangs is a hook for requests that get no response.
func hangs(ctx context.Context, verb string) error {
	if verb == "watch" {
		return errUnreachable
	}
	<-ctx.Done()
	return ctx.Err()
}

// refusals are the ways in which an API server that works refuses a Lease.
var refusals = map[string]struct {
	held bool // by another process
	hook hook
	want string // in every message
}{
	"namespace missing":   {false, fails(apierrors.NewNotFound(corev1.Resource("namespaces"), "default"), "create"), "namespace default does not exist; create it, or set another --leader-elect-resource-namespace"},
	"get forbidden":       {true, fails(apierrors.NewForbidden(leases, "lease", nil), "get", "update", "try"), "not permitted in namespace default; grant the permission, or set another --leader-elect-resource-namespace"},
	"create forbidden":    {false, fails(apierrors.NewForbidden(leases, "lease", nil), "create"), "not permitted in namespace default"},
	"update forbidden":    {true, fails(apierrors.NewForbidden(leases, "lease", nil), "update", "try"), "not permitted in namespace default"},
	"credentials expired": {true, fails(apierrors.NewUnauthorized("credentials rejected"), "get", "create", "update", "try", "watch"), "credentials rejected"},
	"webhook broken":      {false, fails(apierrors.NewInternalError(errors.New("failed calling webhook")), "create", "update"), "failed calling webhook"},
}

func TestReplicaThatMayNotUseLeaseNeverBecomesReady(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				if tc.held {
					server.put("b")
				}
				registry := metrics.NewKubeRegistry()
				a := newCandidate(t, server, "a", func(c *Config) { c.Metrics = NewMetrics("test", registry.MustRegister) })
				a.client.beforeEach(tc.hook)
				if err := a.CheckLease(nil); err == nil {
					t.Error("ready before the Lease was read")
				}
				stop := renews(server, tc.held)
				a.run(untilTheEnd)
				for range 60 {
					if err := a.CheckLease(nil); err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Fatalf("CheckLease: %v, want %q", err, tc.want)
					}
					pass(time.Second)
				}
				if got := a.Status().String(); !strings.Contains(got, tc.want) {
					t.Errorf("the status is %q, want %q", got, tc.want)
				}
				if got := a.log.String(); !strings.Contains(got, tc.want) || len(a.errors()) == 0 {
					t.Errorf("the log has no error with %q:\n%s", tc.want, got)
				}
				wantRefused(t, registry, "1")

				a.client.heal()
				pass(2 * tryPeriod)
				stop()
				if err := a.CheckLease(nil); err != nil {
					t.Errorf("CheckLease after it was granted: %v", err)
				}
				wantRefused(t, registry, "0")
				a.stop()
				_ = a.wait()
			})
		})
	}
}

// renews keeps the Lease of another process renewed until stop is called.
func renews(server *apiServer, held bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	defer synctest.Wait() // until it is renewed for the first time
	go func() {
		defer close(done)
		for held && ctx.Err() == nil {
			server.put("b")
			select {
			case <-time.After(retryPeriod):
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}

func wantRefused(t *testing.T, registry metrics.KubeRegistry, want string) {
	t.Helper()
	const name = "test_leadership_lease_refused"
	text := `
# HELP test_leadership_lease_refused [ALPHA] 1 while the API server refuses this process its Lease, so that it cannot lead: a permission or the namespace is missing, or the credentials are not accepted. 0 otherwise.
# TYPE test_leadership_lease_refused gauge
test_leadership_lease_refused ` + want + "\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

func TestRefusedLeaseMakesReplicaUnreadyAfterGracePeriod(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		pass(time.Minute)
		a.client.beforeEach(fails(apierrors.NewUnauthorized("Unauthorized"), "get", "create", "update", "try", "watch"))
		a.client.endWatch()
		pass(tolerated - retryPeriod)
		if err := a.CheckLease(nil); err != nil {
			t.Errorf("CheckLease before %v: %v", tolerated, err)
		}
		pass(4 * retryPeriod)
		if err := a.CheckLease(nil); err == nil || !strings.Contains(err.Error(), "since 2000-01-01T00:01:0") {
			t.Errorf("CheckLease after %v: %v, want the time in it", tolerated, err)
		}
		a.client.heal()
		pass(2 * tryPeriod)
		if err := a.CheckLease(nil); err != nil || !a.Status().Leading {
			t.Errorf("CheckLease with good credentials: %v, %v", err, a.Status())
		}
		a.end(t)
	})
}

// A standby does not write. It must not report the refusal of its last write forever.
func TestStandbyNoticesThatWritesAreGrantedAndRevoked(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		stop := renews(server, true)
		a := newCandidate(t, server, "a")
		a.run(never(t))
		for _, revoked := range []bool{false, true, false} {
			a.client.heal()
			if revoked {
				a.client.beforeEach(fails(apierrors.NewForbidden(leases, "lease", nil), "update", "try"))
			}
			pass(2*tryPeriod + tolerated)
			if err := a.CheckLease(nil); (err != nil) != revoked {
				t.Errorf("CheckLease of a standby whose permission is revoked (%t): %v", revoked, err)
			}
		}
		if got := server.writesBy("a"); got != 0 {
			t.Errorf("the standby wrote %d times", got)
		}
		// Encoding a request sets the kind of its object, while the campaign reads the Lease.
		lease := a.observer.seen()
		if a.try(t.Context()); lease.Kind != "" {
			t.Error("a try of a write has changed the Lease that was seen")
		}
		stop()
		a.stop()
		_ = a.wait()
	})
}

func TestUnreachableAPIServerLeavesReplicaReady(t *testing.T) {
	for name, broken := range map[string]hook{"refuses connections": fails(errUnreachable, "get", "create", "update", "try", "watch"), "hangs": hangs,
		"lost its etcd": fails(apierrors.NewInternalError(errors.New("etcdserver: no leader")), "get", "create", "update", "try")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a := newCandidate(t, server, "a")
				a.run(untilTheEnd)
				pass(time.Minute)
				a.client.beforeEach(broken)
				a.client.endWatch()
				for range 10 * time.Minute / time.Second {
					pass(time.Second)
					if err := a.CheckLease(nil); err != nil {
						t.Fatalf("CheckLease: %v", err)
					}
				}
				a.end(t)
			})
		})
	}
}

// An API server without its etcd still serves an old Lease from its cache to watches.
func TestStatusOnStaleAPIServerIsNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		stop := renews(server, true)
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		pass(time.Minute)
		stop()
		a.client.beforeEach(func(ctx context.Context, verb string) error {
			if verb == "watch" {
				return nil
			}
			return hangs(ctx, verb)
		})
		for range 10 {
			a.client.endWatch()
			pass(leaseDuration)
		}
		if got, want := a.Status(), "not known since 2000-01-01T00:01:00Z: context deadline exceeded"; got.String() != want || got.Holder != "" {
			t.Errorf("the status is %q, want %q", got, want)
		}
		a.client.heal()
		pass(renewDeadline)
		if !a.Status().Leading {
			t.Errorf("the status is %q, want it to lead", a.Status())
		}
		a.end(t)
	})
}

func TestTwoTimeoutsMakeNewConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		var a *candidate
		reconnects := 0
		a = newCandidate(t, server, "a", func(c *Config) {
			c.Reconnect = func() {
				reconnects++
				a.client.heal()
			}
		})
		a.run(untilTheEnd)
		pass(time.Minute)
		a.client.beforeEach(hangs)
		pass(3 * renewDeadline)
		if reconnects != 1 || !a.Status().Leading {
			t.Errorf("%d new connections after two timeouts, %v, want one, and to lead", reconnects, a.Status())
		}
		a.client.beforeEach(fails(errUnreachable, "get", "update"))
		pass(time.Minute)
		if reconnects != 1 {
			t.Errorf("%d new connections, although no request timed out", reconnects-1)
		}
		a.client.heal()
		a.end(t)
	})
}
