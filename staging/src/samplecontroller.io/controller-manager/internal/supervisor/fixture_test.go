// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"samplecontroller.io/controller-manager/controller"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exactBackoff is the default backoff without jitter.
var exactBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 16, Cap: time.Minute}

// fake is a controller that records its runs.
type fake struct {
	name string
	run  func(ctx context.Context, nth int) error

	mutex   sync.Mutex
	begin   time.Time
	starts  []time.Duration
	running int
}

// newFake returns a controller that runs until it is told to stop, or does what run does at
// its nth start.
func newFake(name string, run ...func(ctx context.Context, nth int) error) *fake {
	f := &fake{name: name, begin: time.Now(), run: work}
	for _, run := range run {
		f.run = run
	}
	return f
}

// work is the Run function of a healthy controller.
func work(ctx context.Context, _ int) error {
	<-ctx.Done()
	return nil
}

func (f *fake) Name() string { return f.name }

func (f *fake) Run(ctx context.Context) error {
	f.mutex.Lock()
	f.starts = append(f.starts, time.Since(f.begin))
	f.running++
	nth := len(f.starts)
	f.mutex.Unlock()
	defer func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.running--
	}()
	return f.run(ctx, nth)
}

// started returns the times of its starts since it was created.
func (f *fake) started() []time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.starts
}

func (f *fake) isRunning() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.running > 0
}

// inBubble runs a test in a synctest bubble. There time passes only when every goroutine
// waits, and the test fails if one leaks.
func inBubble(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

// begin runs the supervisor for a term until the returned function is called. That function
// returns the result of Run.
func begin(t *testing.T, s *Supervisor) (end func() error) {
	t.Helper()
	end, _ = beginWithLog(t, s)
	return end
}

// beginWithLog is begin that also returns the log.
func beginWithLog(t *testing.T, s *Supervisor) (end func() error, log ktesting.Buffer) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	synctest.Wait()
	end = func() error {
		cancel()
		return <-done
	}
	return end, logger.GetSink().(ktesting.Underlier).GetBuffer()
}

// expectEnd ends the term and expects no error.
func expectEnd(t *testing.T, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// states returns the state of each controller.
func states(s *Supervisor) map[string]State {
	states := map[string]State{}
	for _, status := range s.Status(0) {
		states[status.Controller] = status.State
	}
	return states
}

// unhealthy returns the errors of the failing checks by their names.
func unhealthy(s *Supervisor) map[string]string {
	errs := map[string]string{}
	for _, check := range s.HealthChecks() {
		if err := check.Check(nil); err != nil {
			errs[check.Name()] = err.Error()
		}
	}
	return errs
}

// all returns fakes as controllers.
func all(fakes ...*fake) []controller.Controller {
	var controllers []controller.Controller
	for _, f := range fakes {
		controllers = append(controllers, f)
	}
	return controllers
}
