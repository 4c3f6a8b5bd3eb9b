// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// onceRecorder is a planner that records how syncs end.
type onceRecorder struct {
	mutex sync.Mutex
	ends  []string
}

func (r *onceRecorder) Forget(string, string) {}

func (r *onceRecorder) Begin(ctx context.Context, _, _, key string) (context.Context, func(bool, error) time.Duration) {
	return ctx, func(again bool, err error) time.Duration {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		switch {
		case again:
			r.ends = append(r.ends, key+" again")
		case err != nil:
			r.ends = append(r.ends, key+" failed")
		default:
			r.ends = append(r.ends, key)
		}
		return 0
	}
}

// TestOnceTriesStaleSyncsAgain has a sync that is stale twice, and fails.
func TestOnceTriesStaleSyncsAgain(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.server.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		b.start(b.informer)
		calls, planner := 0, &onceRecorder{}
		loop := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) {
			if calls++; calls < 3 {
				return 0, ErrStale
			}
			return time.Second, errors.New("broken")
		}, WithPlanner(planner))
		WatchSelf(loop, b.informer)
		if err := loop.Once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(planner.ends, ", "), "ns/a again, ns/a again, ns/a failed"; got != want {
			t.Errorf("the syncs ended as %q, want %q", got, want)
		}
	})
}

// missing are sources that do not become available.
type missing struct{ err error }

func (m missing) Served(...cache.Store) (error, <-chan struct{}) { return m.err, nil }

func (m missing) Resource(cache.Store) string { return "configmaps" }

// TestOnceDoesNotWaitForMissingAPI has an API that is not installed, and one that cannot be read.
func TestOnceDoesNotWaitForMissingAPI(t *testing.T) {
	absent := apierrors.NewNotFound(corev1.Resource("configmaps"), "")
	for name, tc := range map[string]struct {
		err  error
		wait time.Duration
	}{"not installed": {absent, 0}, "broken": {errors.New("broken"), onceSyncing}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				began := time.Now()
				loop := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, nil },
					WithPlanner(&onceRecorder{}), WithSources(missing{tc.err}))
				WatchSelf(loop, b.informer)
				if err := loop.Once(b.ctx); !errors.Is(err, tc.err) || time.Since(began) != tc.wait {
					t.Errorf("got %v after %v, want %v after %v", err, time.Since(began), tc.err, tc.wait)
				}
			})
		})
	}
}

func TestOnceNeedsPlanner(t *testing.T) {
	loop := New("test", func(context.Context, cache.ObjectName) (time.Duration, error) {
		t.Error("a sync without a planner was called")
		return 0, nil
	})
	if err := loop.Once(t.Context()); err == nil {
		t.Error("no error")
	}
}
