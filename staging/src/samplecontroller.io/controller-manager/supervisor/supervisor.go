// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
)

// Options say how controllers are started and stopped.
type Options struct {
	// StartInterval is how long to wait before each start, up to twice as long by
	// jitter, so that controllers do not all begin in one instant. 0: no wait.
	StartInterval time.Duration
	// ShutdownTimeout is how long to wait at the end of a term for controllers to
	// return. 0: for as long as it takes.
	ShutdownTimeout time.Duration
	// Backoff is how long to wait before a controller is started again that has
	// failed. Its zero value is 1 s, doubling to 1 minute. It begins anew for a
	// controller that has run well for 5 minutes.
	Backoff wait.Backoff
}

// Supervisor runs controllers. Make it with [New].
type Supervisor struct {
	options Options
	runners []*runner
}

// New returns a supervisor of the given controllers. Nothing runs yet.
func New(controllers []controller.Controller, options Options) *Supervisor {
	if options.Backoff == (wait.Backoff{}) {
		options.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 16, Cap: time.Minute}
	}
	s := &Supervisor{options: options}
	for _, c := range controllers {
		s.runners = append(s.runners, newRunner(c))
	}
	return s
}

// Run runs all controllers until ctx ends, and returns when all have returned.
// It may be called again for another term.
//
// If some have not returned within ShutdownTimeout, Run returns an error that
// names them. They may then still be at work, so the caller must not let anybody
// else lead before this process has ended.
func (s *Supervisor) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, r := range s.runners {
		wg.Go(func() { r.run(ctx, s.options) })
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		wg.Wait()
	}()

	<-ctx.Done()
	for _, r := range s.runners {
		r.stopping()
	}
	var timeout <-chan time.Time
	if s.options.ShutdownTimeout > 0 {
		timer := time.NewTimer(s.options.ShutdownTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-drained:
		klog.FromContext(ctx).Info("All controllers have stopped")
		return nil
	case <-timeout:
		return fmt.Errorf("controllers still running %v after they were told to stop: %s", s.options.ShutdownTimeout, strings.Join(s.running(), ", "))
	}
}

// HealthChecks returns one check for each controller, under its name. It fails
// while the controller is degraded.
func (s *Supervisor) HealthChecks() []healthz.HealthChecker {
	var checks []healthz.HealthChecker
	for _, r := range s.runners {
		checks = append(checks, healthz.NamedCheck(r.controller.Name(), r.check))
	}
	return checks
}

// Status returns what each controller is doing, sorted by name.
func (s *Supervisor) Status() []Status {
	var all []Status
	for _, r := range s.runners {
		all = append(all, r.current())
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Controller, b.Controller) })
	return all
}

func (s *Supervisor) running() []string {
	var names []string
	for _, status := range s.Status() {
		if status.State != Standby {
			names = append(names, status.Controller)
		}
	}
	return names
}
