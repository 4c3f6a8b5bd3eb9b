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
	// Thresholds are from when a controller is unhealthy. Those that are zero are the
	// defaults.
	Thresholds Thresholds
	// Denied returns why a controller may not write what it has to, and since when; a
	// nil error if it may. nil: nobody knows.
	Denied func(controller string) (why error, since time.Time)
	// Disabled are the names of the controllers that are not enabled, for Status to
	// tell.
	Disabled []string
	// Metrics tell what the controllers are doing; nil: nobody does.
	Metrics *Metrics
}

// Supervisor runs controllers. Make it with [New].
type Supervisor struct {
	options Options
	runners []*runner
	since   time.Time
}

// New returns a supervisor of the given controllers. Nothing runs yet.
func New(controllers []controller.Controller, options Options) *Supervisor {
	if options.Backoff == (wait.Backoff{}) {
		options.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 16, Cap: time.Minute}
	}
	options.Thresholds = options.Thresholds.orDefault()
	s := &Supervisor{options: options, since: time.Now()}
	for _, c := range controllers {
		s.runners = append(s.runners, newRunner(c))
	}
	options.Metrics.watch(s)
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

// running says which controllers have not returned, and what keeps them.
func (s *Supervisor) running() []string {
	var all []string
	for _, r := range s.runners {
		if status := r.own(); status.State != Standby {
			all = append(all, r.describe(status.Controller))
		}
	}
	slices.Sort(all)
	return all
}

// describe names the controller with the longest of its running syncs.
func (r *runner) describe(name string) string {
	for _, p := range r.progress(1) {
		for _, entry := range p.Running.First {
			return fmt.Sprintf("%s (still syncing %s after %v)", name, entry.Key, time.Since(entry.Time).Round(time.Millisecond))
		}
	}
	return name
}
