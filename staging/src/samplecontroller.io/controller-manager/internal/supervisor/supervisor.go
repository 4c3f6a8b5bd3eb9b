// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
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

// Options configure how controllers are started and stopped.
type Options struct {
	// ShutdownTimeout is how long to wait for controllers to return at the end of a term.
	// 0: no limit.
	ShutdownTimeout time.Duration
	// Backoff is the delay before a failed controller is restarted. The zero value means
	// 1 s, doubling to 1 minute. It resets for a controller that has run for 5 minutes
	// without failure.
	Backoff wait.Backoff
	// SyncTimeout is how long a sync may take. A controller with a longer sync is unhealthy
	// sooner or later: see [Supervisor.HealthChecks] and [Supervisor.LivenessCheck]. Default
	// 30 s.
	SyncTimeout time.Duration
	// Denied returns why a controller cannot do its work, such as a missing permission to write,
	// and since when; a nil error if it can. Denied may be nil.
	Denied func(controller string) (why error, since time.Time)
	// Note returns what people should know of a controller that works, such as needless writes; "" if
	// there is nothing. It is the reason in its Status. Note may be nil.
	Note func(controller string) string
	// Disabled are the names of the controllers that are not enabled. Those that New gets anyway can be
	// switched on: see [Supervisor.Switch].
	Disabled []string
	// Metrics report what the controllers are doing. It may be nil.
	Metrics *Metrics
}

// Supervisor runs controllers. Create it with [New].
type Supervisor struct {
	options Options
	runners []*runner
	since   time.Time
}

// New returns a supervisor for the given controllers, without starting them.
func New(controllers []controller.Controller, options Options) *Supervisor {
	if options.Backoff == (wait.Backoff{}) {
		options.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 16, Cap: time.Minute}
	}
	options.SyncTimeout = cmp.Or(options.SyncTimeout, 30*time.Second)
	s := &Supervisor{options: options, since: time.Now()}
	for _, c := range controllers {
		s.runners = append(s.runners, newRunner(c, !slices.Contains(options.Disabled, c.Name())))
	}
	options.Metrics.watch(s)
	return s
}

// Switch switches the controllers with these names on, and all others off. One that is switched off is told to
// stop; Switch does not wait for that. It is safe for concurrent use.
func (s *Supervisor) Switch(enabled []string) {
	for _, r := range s.runners {
		r.turn(slices.Contains(enabled, r.controller.Name()))
	}
}

// Run runs all controllers until ctx ends, and returns when all have returned. It may be
// called again for another term.
//
// If some controllers have not returned within ShutdownTimeout, Run returns an error that
// names them. They may still be writing, so the caller must not let another process lead
// before this process has ended.
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

// running returns the controllers that have not returned, with the sync that they run.
func (s *Supervisor) running() []string {
	var all []string
	for _, r := range s.runners {
		if status := r.own(); status.State != Standby && status.State != Disabled {
			all = append(all, r.describe(status.Controller))
		}
	}
	slices.Sort(all)
	return all
}

// describe returns the name of the controller with its longest running sync, or else with its sources.
func (r *runner) describe(name string) string {
	for _, p := range r.progress(1) {
		for _, entry := range p.Running.First {
			return fmt.Sprintf("%s (still syncing %s after %v)", name, entry.Key, time.Since(entry.Time).Round(time.Millisecond))
		}
	}
	if s, ok := r.controller.(Sourced); ok && s.RunningSources() > 0 {
		return fmt.Sprintf("%s (functions given to Source that have not returned: %d; they must return when their "+
			"context ends)", name, s.RunningSources())
	}
	return name
}
