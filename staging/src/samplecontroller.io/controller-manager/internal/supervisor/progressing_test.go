// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestStalledNamesQueuesWithoutProgress(t *testing.T) {
	hang := func(context.Context, cache.ObjectName) (time.Duration, error) { time.Sleep(time.Hour); return 0, nil }
	failBy := func(err error) reconcile.SyncFunc {
		return func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			if strings.HasPrefix(key.Name, "good") {
				return 0, nil
			}
			return 0, err
		}
	}
	five := []string{"a", "b", "c", "d", "e"}
	const stalled = "foo-controller"
	tests := map[string]struct {
		sync    reconcile.SyncFunc
		enqueue []string
		want    string
	}{
		"syncs do not end":             {hang, five[:1], stalled},
		"many fail without a response": {failBy(errBroken), five, stalled},
		"few fail without a response":  {failBy(errBroken), five[:4], ""},
		"many fail, and one succeeds":  {failBy(errBroken), append(five[:5:5], "good"), ""},
		"many fail with a response":    {failBy(fmt.Errorf("creating: %w", errForbidden)), five, ""},
		"nothing to do":                {succeed, nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newLooper(t, "foo-controller", tc.sync, "foo-controller")
				s := New([]controller.Controller{c}, Options{})
				end := begin(t, s)
				for range 5 {
					if got := s.Stalled(); len(got) > 0 {
						t.Errorf("after less than 5 minutes: %q", got)
					}
					c.enqueue(tc.enqueue...)
					time.Sleep(time.Minute)
				}
				time.Sleep(time.Second)
				if got := strings.Join(s.Stalled(), ", "); got != tc.want {
					t.Errorf("after 5 minutes: %q, want %q", got, tc.want)
				}
				expectEnd(t, end)
				if got := s.Stalled(); len(got) > 0 {
					t.Errorf("standby: %q", got)
				}
			})
		})
	}
}

func TestPostponedObjectIsUnhealthy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stale := func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, reconcile.ErrStale }
		c := newLooper(t, "foo-controller", stale, "foo-controller")
		s := New([]controller.Controller{c}, Options{})
		end := begin(t, s)
		c.enqueue("a")
		time.Sleep(time.Minute)
		if got := unhealthy(s); len(got) != 0 {
			t.Errorf("unhealthy for a cache that has been stale for a minute: %q", got)
		}
		time.Sleep(5 * time.Second)
		if got := unhealthy(s)["foo-controller"]; !strings.Contains(got, "/a has not been synced since ") || !strings.Contains(got, "cache is stale") {
			t.Errorf("health of the controller: %q, want the object and the reason", got)
		}
		expectEnd(t, end)
	})
}
