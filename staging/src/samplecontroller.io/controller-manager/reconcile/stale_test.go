// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestHangingSyncOfOtherLoopIsAFailure syncs a key that another loop with the same store is syncing.
func TestHangingSyncOfOtherLoopIsAFailure(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var store ConsistencyStore
		b.server.Add(configMap("foo"))
		b.start(b.informer)
		l := New(loopName, func(context.Context, cache.ObjectName) (time.Duration, error) {
			return time.Minute, nil
		}, WithConsistencyStore(&store))
		WatchSelf(l, b.informer)
		stop := b.run(l, 1)
		synctest.Wait()
		store.begin(foo)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if p := l.Progress(10); p.Failing != 0 || p.Postponed.Total != 0 || len(b.logged(-1)) != 0 {
			t.Errorf("after a minute without a sync: failing %d, postponed %d, logged %q", p.Failing, p.Postponed.Total, b.logged(-1))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		p := l.Progress(10)
		if p.Failing != 1 || p.Postponed.Total != 1 || len(p.Failures) == 0 || len(b.logged(-1)) == 0 {
			t.Fatalf("after more than a minute without a sync: failing %d, postponed %d, logged %q", p.Failing, p.Postponed.Total, b.logged(-1))
		}
		const want = "another sync of the object hangs"
		for _, entry := range []Entry{p.Postponed.First[0], p.Delayed.First[0]} {
			if entry.Key != foo.String() || !strings.Contains(entry.Error, want) {
				t.Errorf("%s: %q, want it to contain %q", entry.Key, entry.Error, want)
			}
		}
		if len(p.Failures) > 4 {
			t.Errorf("%d syncs in 5 s, want one in 2 s, as before", len(p.Failures))
		}
		store.end(foo)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if p := l.Progress(10); p.Failing != 0 || p.Postponed.Total != 0 {
			t.Errorf("after the other sync: failing %d, postponed %d, want 0", p.Failing, p.Postponed.Total)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
