// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

var (
	errAbsent    = apierrors.NewNotFound(schema.GroupResource{Resource: "foos"}, "")
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, "", errors.New("not for you"))
	errSyncing   = errors.New("not yet synced: foos")
	errBrokenAPI = fmt.Errorf("%w: %w", errSyncing, apierrors.NewInternalError(errors.New("conversion webhook failed")))
)

// sources are the resources that a loop reads, served or not.
type sources struct {
	mutex   sync.Mutex
	err     error
	changed chan struct{}
}

func (s *sources) Served(...cache.Store) (error, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.err, s.changed
}

func (s *sources) Resource(cache.Store) string { return "foos" }

func (s *sources) become(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
	close(s.changed)
	s.changed = make(chan struct{})
}

// looper is a controller of loops that each sync the ConfigMaps of a server.
type looper struct {
	name    string
	server  *cachetesting.FakeControllerSource
	sources []*sources
	loops   []*reconcile.Loop
}

// newLooper returns a controller with a loop for each queue, and starts their informers.
func newLooper(t *testing.T, name string, sync reconcile.SyncFunc, queues ...string) *looper {
	t.Helper()
	l := &looper{name: name, server: cachetesting.NewFakeControllerSource()}
	t.Cleanup(l.server.Shutdown)
	informer := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](cache.NewSharedIndexInformer(listFirst{l.server},
		&corev1.ConfigMap{}, 0, nil))
	for _, queue := range queues {
		s := &sources{changed: make(chan struct{})}
		loop := reconcile.New(name, sync, reconcile.WithQueue(queue), reconcile.WithSources(s))
		reconcile.WatchSelf(loop, informer)
		l.sources, l.loops = append(l.sources, s), append(l.loops, loop)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

// listFirst makes an informer list, then watch.
type listFirst struct {
	*cachetesting.FakeControllerSource
}

func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

func (l *looper) Name() string             { return l.name }
func (l *looper) Loops() []*reconcile.Loop { return l.loops }
func (l *looper) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, loop := range l.loops {
		running.Go(func() { _ = loop.Run(ctx) })
	}
	running.Wait()
	return nil
}

// enqueue enqueues some objects.
func (l *looper) enqueue(names ...string) {
	for _, name := range names {
		l.server.Modify(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
}

func succeed(context.Context, cache.ObjectName) (time.Duration, error) { return 0, nil }

// state returns state, reason and age of the one controller.
func state(s *Supervisor) string {
	synctest.Wait()
	status := s.Status(0)[0]
	return fmt.Sprintf("%s for %v: %s", status.State, time.Since(status.Since), status.Reason)
}

func expectState(t *testing.T, s *Supervisor, want string) {
	t.Helper()
	if diff := cmp.Diff(want, state(s)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestStateFollowsSources(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newLooper(t, "foo-controller", succeed, "foo-controller")
		c.sources[0].err = errSyncing
		s := New([]controller.Controller{c}, Options{})
		end := begin(t, s)
		expectState(t, s, "Starting for 0s: not yet synced: foos")
		for _, step := range []struct {
			err     error
			want    string
			healthy bool
		}{
			{errAbsent, "WaitingForAPI for 1m0s: " + errAbsent.Error(), true},
			{nil, "Running for 0s: ", true},
			{errForbidden, "Degraded for 0s: " + errForbidden.Error(), false},
			{nil, "Running for 0s: ", true},
			{errAbsent, "WaitingForAPI for 0s: " + errAbsent.Error(), true},
			{errBrokenAPI, "Degraded for 1m0s: " + errBrokenAPI.Error(), false},
		} {
			time.Sleep(time.Minute)
			c.sources[0].become(step.err)
			expectState(t, s, step.want)
			if failing := unhealthy(s); step.healthy != (len(failing) == 0) {
				t.Errorf("while %s: failing checks %v, want healthy %t", step.want, failing, step.healthy)
			}
		}
		expectEnd(t, end)
		expectState(t, s, "Standby for 0s: ")
	})
}

// A controller of two kinds serves the kind whose API is installed.
func TestControllerRunsIfOneLoopRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newLooper(t, "x-controller", succeed, "x-controller-foos", "x-controller-bars")
		c.sources[1].err = errAbsent
		s := New([]controller.Controller{c}, Options{})
		end := begin(t, s)
		expectState(t, s, "Running for 0s: x-controller-bars is paused: "+errAbsent.Error())
		c.sources[0].become(errAbsent)
		expectState(t, s, "WaitingForAPI for 0s: x-controller-foos is paused: "+errAbsent.Error()+"; x-controller-bars is paused: "+errAbsent.Error())
		c.sources[0].become(errForbidden)
		expectState(t, s, "Degraded for 0s: "+errForbidden.Error())
		c.sources[0].become(nil)
		c.sources[1].become(nil)
		expectState(t, s, "Running for 0s: ")
		expectEnd(t, end)
	})
}

// TestMissingWritePermissionIsDegraded covers a note, too, which is less important.
func TestMissingWritePermissionIsDegraded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newLooper(t, "foo-controller", succeed, "foo-controller")
		var why error
		since := time.Now()
		note := ""
		s := New([]controller.Controller{c}, Options{
			Note: func(string) string { return note },
			Denied: func(name string) (error, time.Time) {
				if name != "foo-controller" {
					t.Errorf("asked about %q", name)
				}
				return why, since
			},
		})
		why = errForbidden
		expectState(t, s, "Standby for 0s: ")
		end := begin(t, s)
		time.Sleep(time.Minute)
		expectState(t, s, "Degraded for 1m0s: "+errForbidden.Error())
		note = "a needless write"
		expectState(t, s, "Degraded for 1m0s: "+errForbidden.Error())
		why = nil
		expectState(t, s, "Running for 1m0s: "+note)
		expectEnd(t, end)
	})
}

// TestLackOfProgressIsUnhealthy covers each way to be unhealthy, up to its threshold.
func TestLackOfProgressIsUnhealthy(t *testing.T) {
	hang := func(context.Context, cache.ObjectName) (time.Duration, error) { time.Sleep(time.Hour); return 0, nil }
	fail := func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, errBroken }
	tests := map[string]struct {
		sync    reconcile.SyncFunc
		enqueue []string
		// healthy is how long the checks pass. want is the error after that.
		healthy     time.Duration
		want        string
		syncTimeout time.Duration
	}{
		"sync runs too long": {
			sync: hang, enqueue: []string{"a"},
			healthy: time.Minute, want: "default/a has been syncing since ",
		},
		"object waits too long": {
			sync: hang, enqueue: []string{"a", "a2"}, syncTimeout: time.Hour,
			healthy: 5 * time.Minute, want: "default/a2 has been waiting for a worker since ",
		},
		"many objects fail, none succeeds": {
			sync: fail, enqueue: []string{"a", "b", "c", "d", "e"},
			healthy: 5 * time.Minute, want: "5 objects fail and none has succeeded since ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newLooper(t, "foo-controller", tc.sync, "foo-controller")
				s := New([]controller.Controller{c}, Options{SyncTimeout: tc.syncTimeout})
				end := begin(t, s)
				for _, name := range tc.enqueue {
					c.enqueue(name)
					synctest.Wait() // keeps the order
				}
				time.Sleep(tc.healthy)
				if failing := unhealthy(s); len(failing) > 0 {
					t.Errorf("after %v: failing checks %v, want none", tc.healthy, failing)
				}
				time.Sleep(time.Second)
				if got := unhealthy(s)["foo-controller"]; !strings.HasPrefix(got, tc.want) {
					t.Errorf("after %v: check fails with %q, want %q", tc.healthy+time.Second, got, tc.want)
				}
				expectEnd(t, end)
			})
		})
	}
}

// TestIdleControllerIsHealthy covers states that look like a lack of progress.
func TestIdleControllerIsHealthy(t *testing.T) {
	tests := map[string]struct {
		sync    reconcile.SyncFunc
		enqueue []string
	}{
		"nothing to do":              {sync: succeed},
		"long backoff of one object": {sync: failFor("bad"), enqueue: []string{"bad"}},
		"some fail, one succeeds":    {sync: failFor("bad"), enqueue: []string{"bad1", "bad2", "bad3", "bad4", "bad5", "good"}},
		"delayed objects": {sync: func(context.Context, cache.ObjectName) (time.Duration, error) { return time.Hour, nil },
			enqueue: []string{"a", "b", "c", "d", "e", "f"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newLooper(t, "foo-controller", tc.sync, "foo-controller")
				s := New([]controller.Controller{c}, Options{})
				for range 100 { // a standby
					time.Sleep(time.Minute)
					expectHealthy(t, s)
				}
				end := begin(t, s)
				for range 100 {
					c.enqueue(tc.enqueue...)
					time.Sleep(time.Minute)
					expectHealthy(t, s)
				}
				expectEnd(t, end)
			})
		})
	}
}

func expectHealthy(t *testing.T, s *Supervisor) {
	t.Helper()
	if failing := unhealthy(s); len(failing) > 0 {
		t.Errorf("failing checks %v, want none", failing)
	}
	if err := s.LivenessCheck().Check(nil); err != nil {
		t.Errorf("liveness: %v", err)
	}
}

// failFor fails for objects whose name has the prefix.
func failFor(prefix string) reconcile.SyncFunc {
	return func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
		if strings.HasPrefix(key.Name, prefix) {
			return 0, errBroken
		}
		return 0, nil
	}
}

func TestLivenessFailsOnlyForStuckSync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newLooper(t, "foo-controller", func(context.Context, cache.ObjectName) (time.Duration,
			error) {
			time.Sleep(time.Hour)
			return 0, nil
		}, "foo-controller")
		s := New([]controller.Controller{c}, Options{})
		end := begin(t, s)
		c.enqueue("a")
		time.Sleep(5 * time.Minute)
		if err := s.LivenessCheck().Check(nil); err != nil {
			t.Errorf("after 5m: %v", err)
		}
		time.Sleep(time.Second)
		err := s.LivenessCheck().Check(nil)
		if want := "foo-controller: default/a has been syncing since "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("after 5m1s: %v, want %s", err, want)
		}
		time.Sleep(time.Hour)
		if err := s.LivenessCheck().Check(nil); err != nil {
			t.Errorf("after it has ended: %v", err)
		}
		expectEnd(t, end)
	})
}

func TestShutdownErrorNamesRunningSync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newLooper(t, "foo-controller", func(context.Context, cache.ObjectName) (time.Duration,
			error) {
			time.Sleep(time.Hour)
			return 0, nil
		}, "foo-controller")
		s := New([]controller.Controller{c}, Options{ShutdownTimeout: 10 * time.Second})
		end := begin(t, s)
		c.enqueue("a")
		time.Sleep(time.Second)
		err := end()
		if want := "controllers still running 10s after they were told to stop: foo-controller (still syncing default/a after 11s)"; err == nil || err.Error() != want {
			t.Errorf("Run: %v, want %s", err, want)
		}
		time.Sleep(time.Hour)
	})
}

func TestControllerMetrics(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.CustomMustRegister)
	inBubble(t, func(t *testing.T) {
		New(nil, Options{Metrics: m, Disabled: []string{"old-controller"}}) // replaced by the next supervisor
		block := make(chan struct{})
		c := newLooper(t, "foo-controller", func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			switch key.Name {
			case "bad":
				return 0, errBroken
			case "slow":
				<-block
			}
			return 0, nil
		}, "foo-controller")
		s := New([]controller.Controller{c}, Options{Metrics: m, Disabled: []string{"bar-controller"}})
		end := begin(t, s)
		for _, name := range []string{"bad", "slow", "waiting"} {
			c.enqueue(name)
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second - 3*time.Millisecond)
		want := `
# HELP test_controller_state [ALPHA] 1 for the state that a controller is in, 0 for all others, by controller and state (Disabled, Standby, Starting, WaitingForAPI, Running, Degraded, Stopping).
# TYPE test_controller_state gauge
` + series("bar-controller", Disabled) + series("foo-controller", Running) + `
# HELP test_failing_objects [ALPHA] Number of objects whose last sync failed and that are retried with backoff, by controller.
# TYPE test_failing_objects gauge
test_failing_objects{controller="bar-controller"} 0
test_failing_objects{controller="foo-controller"} 1
# HELP test_oldest_key_seconds [ALPHA] How long the longest-waiting object has waited for a worker, by controller; 0 if none waits.
# TYPE test_oldest_key_seconds gauge
test_oldest_key_seconds{controller="bar-controller"} 0
test_oldest_key_seconds{controller="foo-controller"} 0.998
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		close(block)
		expectEnd(t, end)
	})
}

// series returns the series of the states of a controller.
func series(controller string, is State) string {
	var b strings.Builder
	for _, state := range States() {
		value := 0
		if state == is {
			value = 1
		}
		fmt.Fprintf(&b, "test_controller_state{controller=%q,state=%q} %d\n", controller, state, value)
	}
	return b.String()
}
