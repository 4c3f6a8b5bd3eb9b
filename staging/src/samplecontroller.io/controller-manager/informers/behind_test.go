// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// restored is what is stored after a backup was restored. The object lost was made after it.
var restored = map[string]types.UID{"kept": "1", "new": "3"}

// TestRestoredBackupIsListed restores the API server to an older version. It then opens
// watches at versions that it has not reached, and never sends the changes up to them.
func TestRestoredBackupIsListed(t *testing.T) {
	for name, tc := range map[string]struct {
		outage time.Duration // until the API server is back
		writes int           // meanwhile
		later  int           // when it is back
	}{
		"without writes":                       {0, 0, 0},
		"writes reach the version later":       {0, 0, 100},
		"short outage, and writes later":       {maxInterruption / 2, 10, 100},
		"long outage, and writes pass it":      {maxInterruption + time.Second, 100, 100},
		"very long outage, writes pass it":     {time.Hour, 100, 0},
		"long outage, and writes pass it soon": {maxInterruption + time.Second, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				server := b.configMapServer
				server.create("kept", "1")
				for range 50 {
					server.create("lost", "2")
				}
				informer := b.configMaps()
				b.factory.Start(b.ctx)
				b.waitForSync()
				time.Sleep(time.Minute)
				server.answer(unreachable)
				server.restore(map[string]types.UID{"kept": "1", "new": "3"})
				time.Sleep(tc.outage)
				for range tc.writes {
					server.create("new", "3")
				}
				server.answer(nil)
				time.Sleep(2*retryPeriod + shortWatch)
				for range tc.later {
					server.create("new", "3")
				}
				synctest.Wait()
				if diff := cmp.Diff(restored, held(informer)); diff != "" {
					b.Errorf("cached (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRestoredBackupBehindOpenWatch restores a backup without an end of the watch.
func TestRestoredBackupBehindOpenWatch(t *testing.T) {
	inBubble(t, func(b *bubble) {
		server := b.configMapServer
		server.create("kept", "1")
		server.create("lost", "2")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		b.waitForSync()
		time.Sleep(time.Second)
		server.set(func(s *apiServer) { s.version, s.objects = 1, map[string]types.UID{"kept": "1", "new": "3"} })
		time.Sleep(maxSilence + 2*time.Second)
		if diff := cmp.Diff(restored, held(informer)); diff != "" {
			b.Errorf("cached after the silence (-want +got):\n%s", diff)
		}
	})
}

func TestResumedWatchDoesNotList(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		b.configMapServer.requested()
		for range 10 {
			b.configMapServer.close()
			time.Sleep(time.Minute)
		}
		if diff := cmp.Diff(map[string]int{"watch": 10, "version": 10}, b.configMapServer.requested()); diff != "" {
			b.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// expectUnfollowed expects each check to report ConfigMaps, or none if want is empty.
func expectUnfollowed(b *bubble, when, want string) {
	b.Helper()
	r := b.factory.Resources()[0]
	for check, err := range map[string]error{
		"Check": b.factory.Check(nil), "CheckWatches": b.factory.CheckWatches(), "failure": r.Failure,
	} {
		switch {
		case want == "" && err != nil:
			b.Errorf("%s %s: %v, want none", check, when, err)
		case want != "" && (err == nil || strings.HasPrefix(check, "Check") && !strings.Contains(err.Error(), want)):
			b.Errorf("%s %s: %v, want %q", check, when, err, want)
		}
	}
	if got := b.factory.Stale(); (len(got) == 0) != (want == "") {
		b.Errorf("Stale %s: %q, want ConfigMaps: %t", when, got, want != "")
	}
}

// TestWatchesThatEndAtOnce ends all watches before an event, as a proxy that cuts streams, or
// before the response, for which client-go returns an empty watch.
func TestWatchesThatEndAtOnce(t *testing.T) {
	for name, cut := range map[string]func(s *apiServer, is bool){
		"without events":      func(s *apiServer, is bool) { s.cuts = is },
		"before the response": func(s *apiServer, is bool) { s.lost = is },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				server := b.configMapServer
				server.create("first", "1")
				informer := b.configMaps()
				b.factory.Start(b.ctx)
				time.Sleep(time.Minute)
				cutAt := time.Now()
				server.set(func(s *apiServer) { cut(s, true); s.closeLocked() })
				time.Sleep(15 * time.Second)
				expectUnfollowed(b, "after 15 s", "the watch of configmaps does not work: watches end at once")
				for i := range 20 {
					server.create(fmt.Sprint(i), "1")
					time.Sleep(12 * time.Second)
					if _, found := held(informer)[fmt.Sprint(i)]; !found {
						b.Fatalf("object %d is not in the cache after 12 s", i)
					}
				}
				server.requested()
				time.Sleep(10 * time.Minute)
				requests := server.requested()
				if lists := max(requests["list"], requests["watch+"]); lists < 50 || lists > 60 {
					b.Errorf("%v in 10 minutes, want a list about every 10 s", requests)
				}
				r := b.factory.Resources()[0]
				if !r.Served || r.LastSign.After(cutAt.Add(retryPeriod)) {
					b.Errorf("served: %t, last sign of life %v after the cut", r.Served, r.LastSign.Sub(cutAt))
				}
				if logged := b.logged(); !slices.Contains(logged, "!Watching failed") || len(logged) > 1 {
					b.Errorf("logged: %q, want once that watching failed", logged)
				}

				server.set(func(s *apiServer) { cut(s, false) })
				time.Sleep(5 * time.Second)
				expectUnfollowed(b, "when watches work", "")
			})
		})
	}
}

func TestNoWatchFromTheStart(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.lost = true
		b.configMapServer.create("first", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		expectServed(b, "by lists", nil)
		b.configMapServer.create("second", "1")
		time.Sleep(12 * time.Second)
		if got := held(informer); len(got) != 2 {
			b.Errorf("cached: %v, want two objects", got)
		}
	})
}

// TestSilentWatchIsReplaced has a connection that works, and a watch without bookmarks.
func TestSilentWatchIsReplaced(t *testing.T) {
	inBubble(t, func(b *bubble) {
		server := b.configMapServer
		server.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		begin := time.Now()
		time.Sleep(maxSilence - time.Second)
		server.set(func(s *apiServer) { s.version++; s.objects["unseen"] = "2" }) // no event
		time.Sleep(2 * time.Second)
		expectUnfollowed(b, "once the watch is replaced", "the watch of configmaps has been silent since "+begin.UTC().Format(time.RFC3339))
		if got := held(informer); len(got) != 2 {
			b.Errorf("cached: %v, want two objects", got)
		}
		time.Sleep(time.Hour)
		expectUnfollowed(b, "after an hour", "the watch of configmaps has been silent since "+begin.UTC().Format(time.RFC3339))
		server.create("b", "1")
		synctest.Wait()
		expectUnfollowed(b, "after an event", "")
	})
}

func TestHungResourceDoesNotHoldUpOthers(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.sendBookmarks()
		b.secretServer.hangs = true
		b.configMaps()
		b.secrets()
		b.factory.Start(b.ctx)
		ctx, cancel := context.WithTimeout(b.ctx, time.Hour)
		defer cancel()
		begin := time.Now()
		if !b.factory.WaitUntilSettled(ctx) || time.Since(begin) > patience {
			b.Errorf("settled after %v, want %v", time.Since(begin), patience)
		}
		verb := "watch"
		if b.secretServer.lists {
			verb = "list"
		}
		want := fmt.Sprintf("not yet synced: secrets: no answer to %s since %s", verb, begin.UTC().Format(time.RFC3339))
		if err := b.factory.Check(nil); err == nil || err.Error() != want {
			b.Errorf("Check: %v, want %s", err, want)
		}
		if diff := cmp.Diff([]string{"!Not waiting for a resource that cannot be read", "!Reading failed"}, slices.Sorted(slices.Values(b.logged()))); diff != "" {
			b.Errorf("log (-want +got):\n%s", diff)
		}
		b.secretServer.set(func(s *apiServer) { s.hangs = false })
		time.Sleep(maxSilence + 10*time.Second)
		if err := b.factory.Check(nil); err != nil {
			b.Errorf("Check once requests are answered: %v", err)
		}
	})
}

func TestHungRequestDoesNotHoldUpShutdown(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.hangs = true
		b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		begin := time.Now()
		b.factory.Shutdown()
		if took := time.Since(begin); took > 0 {
			b.Errorf("Shutdown took %v, want none", took)
		}
	})
}

func TestInterruptedStreamIsReplacedByList(t *testing.T) {
	inBubble(t, func(b *bubble) {
		if b.configMapServer.lists {
			b.Skip("no streams")
		}
		b.configMapServer.noStream = true
		b.configMapServer.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(10 * time.Millisecond)
		expectServed(b, "after a list", nil)
		if got := held(informer); len(got) != 1 {
			b.Errorf("cached: %v, want one object", got)
		}
		if diff := cmp.Diff([]string{"!Reading failed"}, b.logged()); diff != "" {
			b.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestHangingAPIServerIsLeft has one or all watches without bookmarks, on connections that work.
func TestHangingAPIServerIsLeft(t *testing.T) {
	for name, all := range map[string]bool{"one resource": false, "all resources": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				var reconnects atomic.Int32
				b.factory.OnHang(func() { reconnects.Add(1) })
				b.configMaps()
				b.secrets()
				b.factory.Start(b.ctx)
				for minute := range 10 {
					time.Sleep(time.Minute)
					if !all {
						b.secretServer.create(strconv.Itoa(minute), "1")
					}
				}
				if got := reconnects.Load(); (got > 0) != all || got > 4 {
					b.Errorf("%d new connections in 10 minutes", got)
				}
			})
		})
	}
}
