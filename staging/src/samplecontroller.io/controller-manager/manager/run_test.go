// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/server"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestOrderOfStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.controllers = []controller.Controller{&fake{name: "foo-controller", history: p.history,
			run: func(ctx context.Context) error {
				if !p.parts.shared.Informers.WaitUntilSettled(ctx) {
					t.Error("informers have not synced during the term")
				}
				<-ctx.Done()
				time.Sleep(time.Minute)
				if p.informer.IsStopped() {
					t.Error("informers have stopped before the controllers")
				}
				return nil
			}}}
		stop := p.run(t)
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		want := []string{`lease passes from "" to "me"`, "foo-controller begins", "foo-controller ends", `lease passes from "me" to ""`, "process ends"}
		if diff := cmp.Diff(want, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
		if !p.informer.IsStopped() {
			t.Error("informers still run after the end of the process")
		}
	})
}

func TestStandbyHasFullCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.leases.give("another")
		stop := p.run(t)
		for range 60 {
			time.Sleep(time.Minute)
			p.source.sign()
		}
		synctest.Wait()
		if err := p.parts.shared.Informers.Check(nil); err != nil {
			t.Errorf("the caches of the standby: %v", err)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if diff := cmp.Diff([]string{"process ends"}, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

func TestProcessWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.election = nil
		stop := p.run(t)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if diff := cmp.Diff([]string{"foo-controller begins", "foo-controller ends", "process ends"}, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

func TestLeaseIsKeptWhileControllerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.supervision = supervisor.Options{ShutdownTimeout: 10 * time.Second} // the controller takes a minute
		stop := p.run(t)
		err := stop()
		if err == nil || !strings.Contains(err.Error(), "foo-controller") {
			t.Errorf("Run: %v, want an error that names the controller", err)
		}
		if diff := cmp.Diff([]string{`lease passes from "" to "me"`, "foo-controller begins", "process ends"}, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute) // until the controller has returned
	})
}

func TestProcessLeadsAgainAfterLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		stop := p.run(t)
		time.Sleep(time.Second)
		p.leases.give("another")
		time.Sleep(10 * time.Minute)
		p.leases.take()
		time.Sleep(3 * time.Hour)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		want := []string{
			`lease passes from "" to "me"`, "foo-controller begins", "foo-controller ends",
			`lease passes from "" to "me"`, "foo-controller begins", "foo-controller ends",
			`lease passes from "me" to ""`, "process ends",
		}
		if diff := cmp.Diff(want, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

func TestLeaderWithStaleCachesHandsOver(t *testing.T) {
	const offered, preferred = "leadership.samplecontroller.io/offered", "leadership.samplecontroller.io/preferred-holder"
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		stop := p.run(t)
		for range 60 {
			time.Sleep(time.Minute)
			p.source.sign()
		}
		if got := p.leases.annotations(); len(got) > 0 {
			t.Errorf("annotations of the Lease with fresh caches are %v, want none", got)
		}
		time.Sleep(5 * time.Minute)
		if got, want := p.leases.annotations()[offered], "cache of configmaps does not follow the API server"; got != want {
			t.Fatalf("the Lease is offered because of %q, want %q", got, want)
		}
		p.leases.annotate(preferred, "another")
		for !slices.Contains(p.history.all(), `lease passes from "me" to ""`) {
			time.Sleep(time.Second)
		}
		p.leases.give("another")
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		want := []string{`lease passes from "" to "me"`, "foo-controller begins", "foo-controller ends", `lease passes from "me" to ""`, "process ends"}
		if diff := cmp.Diff(want, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

// Another replica may be able to read what this one cannot.
func TestLeaderThatCannotReadOffersLeaseSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		stop := p.run(t)
		time.Sleep(time.Minute)
		p.source.fail()
		time.Sleep(35 * time.Second) // leaves a standby time to accept within the minute
		if got, want := p.leases.annotations()["leadership.samplecontroller.io/offered"], "cache of configmaps does not follow the API server"; got != want {
			t.Errorf("the Lease is offered because of %q, want %q", got, want)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestWarmStandby(t *testing.T) {
	for _, warm := range []bool{true, false} {
		t.Run(fmt.Sprintf("%t", warm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(t)
				p.parts.config.Generic.WarmStandby = warm
				p.source.hold()
				stop := p.run(t)
				time.Sleep(time.Hour)
				if led := len(p.history.all()) > 0; led == warm {
					t.Errorf("leads before its caches are filled: %t", led)
				}
				p.source.release()
				time.Sleep(time.Minute)
				if len(p.history.all()) == 0 {
					t.Error("does not lead although its caches are filled")
				}
				if err := stop(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

func TestStopBeforeStandbyIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.config.Generic.WarmStandby = true
		p.source.hold()
		stop := p.run(t)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		p.source.release() // client-go leaves unanswered requests behind
		synctest.Wait()
		if diff := cmp.Diff([]string{"process ends"}, p.history.all()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

func TestNothingStartsIfServerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.config.Serving.SecureServing = &apiserver.SecureServingInfo{} // without a listener
		if err := run(t.Context(), p.parts); err == nil {
			t.Error("Run: no error, want one of the server")
		}
		if got := p.history.all(); len(got) > 0 {
			t.Errorf("what happened: %q, want nothing", got)
		}
	})
}

// idle is a controller with a loop that has no watches.
type idle struct{ *reconcile.Loop }

func (c idle) Run(ctx context.Context) error { return c.Loop.Run(ctx) }

func TestLoopWithoutWatchesIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.parts.controllers = append(p.parts.controllers, idle{reconcile.New("idle-controller", nil)})
		err := run(t.Context(), p.parts)
		if err == nil || !strings.Contains(err.Error(), "idle-controller has no watches") {
			t.Errorf("Run: %v, want an error about idle-controller", err)
		}
		if got := p.history.all(); len(got) > 0 {
			t.Errorf("what happened: %q, want nothing", got)
		}
	})
}

func TestProbeChecks(t *testing.T) {
	check := func(name string) healthz.HealthChecker {
		return healthz.NamedCheck(name, func(*http.Request) error { return nil })
	}
	names := func(checks []healthz.HealthChecker) []string {
		var names []string
		for _, check := range checks {
			names = append(names, check.Name())
		}
		return names
	}
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		super := supervisor.New(p.parts.controllers, supervisor.Options{})
		p.parts.config.Serving.Healthz = []healthz.HealthChecker{check("own-healthz")}
		p.parts.config.Serving.Livez = []healthz.HealthChecker{check("own-livez")}
		p.parts.config.Serving.Readyz = []healthz.HealthChecker{check("own-readyz")}
		for _, election := range []*leadership.Election{p.parts.election, nil} {
			live, lease := []string{"ping"}, []string(nil)
			if election != nil {
				live, lease = append(live, "leaderElection"), []string{"lease"}
			}
			p.parts.election = election
			got := withReports(p.parts, super)
			for probe, tc := range map[string]struct{ got, want []string }{
				"livez":   {names(got.Livez), slices.Concat(live, []string{"stuck-syncs", "own-livez"})},
				"readyz":  {names(got.Readyz), slices.Concat(live, []string{"informer-sync"}, lease, []string{"own-readyz"})},
				"healthz": {names(got.Healthz), slices.Concat(live, lease, []string{"informer-watch", "foo-controller", "own-healthz"})},
			} {
				if diff := cmp.Diff(tc.want, tc.got); diff != "" {
					t.Errorf("checks of %s (-want +got):\n%s", probe, diff)
				}
			}
		}
	})
}

// Probes and metrics must be available while a controller drains.
func TestServerStopsLast(t *testing.T) {
	p := newProcess(t)
	p.parts.election = nil
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := server.NewOptions("test-manager", 0)
	options.SecureServing.Listener = listener
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // there is no cluster
	if p.parts.config.Serving, err = options.Config(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	url := "https://" + listener.Addr().String()
	begun, drained := make(chan struct{}), make(chan struct{})
	p.parts.controllers = []controller.Controller{&fake{name: "foo-controller", history: p.history,
		run: func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			<-drained
			return nil
		}}}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, p.parts) }()
	<-begun
	cancel()
	if code, err := status(url + "/healthz/foo-controller"); code != http.StatusOK {
		t.Errorf("the check of a draining controller: %d, %v", code, err)
	}
	close(drained)
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if code, err := status(url + "/healthz"); err == nil {
		t.Errorf("the server answers %d after the end of the process", code)
	}
}
