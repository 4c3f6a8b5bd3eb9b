// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestInformerWaitsForAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string // first log lines
	}{
		"CRD is missing":        {notFound, []string{"Waiting for API"}},
		"permission is missing": {forbidden, []string{"!Not permitted to read"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.configMapServer.err = tc.err
				informer := b.configMaps()
				b.factory.Start(b.ctx)
				time.Sleep(time.Hour)
				requests := 0
				for _, n := range b.configMapServer.requested() {
					requests += n
				}
				// 60 in the first minute, then one every 10 to 12 seconds.
				if requests < 60+3540/12 || requests > 62+3540/10 {
					b.Errorf("%d requests in an hour, want one a second for a minute, then one every 10 to 12 seconds", requests)
				}
				if diff := cmp.Diff(tc.want, b.logged()); diff != "" {
					b.Errorf("log while it waits (-want +got):\n%s", diff)
				}
				err, changed := b.factory.Served(informer.GetStore())
				if !errors.Is(err, tc.err) {
					b.Errorf("Served: %v, want the API server's %v", err, tc.err)
				}

				begin := time.Now()
				b.configMapServer.create("a", "1")
				b.configMapServer.answer(nil)
				for err != nil {
					<-changed
					err, changed = b.factory.Served(informer.GetStore())
				}
				if diff := cmp.Diff(map[string]types.UID{"a": "1"}, held(informer)); diff != "" {
					b.Errorf("cache when it counts as served (-want +got):\n%s", diff)
				}
				if took := time.Since(begin); took > 12*time.Second+10*time.Millisecond {
					b.Errorf("served %v after the API server responds, want within 12 s", took)
				}
				if diff := cmp.Diff(append(tc.want, "API is served"), b.logged()); diff != "" {
					b.Errorf("log once it is served (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestReturnedAPIIsServedOnceCacheIsCurrent(t *testing.T) {
	for name, denial := range map[string]error{"its CRD has gone": notFound, "permission has gone": forbidden} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.configMapServer.create("a", "1")
				informer := b.configMaps()
				b.factory.Start(b.ctx)
				time.Sleep(time.Minute)
				expectServed(b, "at first", nil)

				b.configMapServer.answer(denial)
				b.configMapServer.close()
				time.Sleep(time.Hour)
				expectServed(b, "when it has gone", denial)
				if diff := cmp.Diff(map[string]types.UID{"a": "1"}, held(informer)); diff != "" {
					b.Errorf("cache until then (-want +got):\n%s", diff)
				}

				// The list takes long.
				b.configMapServer.replace(map[string]types.UID{"a": "2", "b": "3"})
				if denial == forbidden {
					b.configMapServer.oldest = 0 // the old version can still be watched
				}
				b.configMapServer.silent = true
				b.configMapServer.answer(nil)
				if !b.configMapServer.lists {
					time.Sleep(20 * time.Second)
					expectServed(b, "while its objects come", ErrNotSynced)
					b.configMapServer.mutex.Lock()
					b.configMapServer.send(watch.Bookmark, b.configMapServer.endOfList())
					b.configMapServer.mutex.Unlock()
				}
				begin := time.Now()
				err, changed := b.factory.Served(informer.GetStore())
				for err != nil {
					<-changed
					err, changed = b.factory.Served(informer.GetStore())
				}
				if diff := cmp.Diff(map[string]types.UID{"a": "2", "b": "3"}, held(informer)); diff != "" {
					b.Errorf("cache when it counts as served (-want +got):\n%s", diff)
				}
				if took := time.Since(begin); took > 12*time.Second+10*time.Millisecond {
					b.Errorf("served after %v", took)
				}
				message := "Waiting for API"
				if denial == forbidden {
					message = "!Not permitted to read"
				}
				if diff := cmp.Diff([]string{message, "API is served"}, b.logged()); diff != "" {
					b.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestQuicklyReplacedAPIStaysServed(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		_, changed := b.factory.Served()
		for _, uid := range []types.UID{"2", "3", "4", "5", "6", "7", "8"} {
			b.configMapServer.replace(map[string]types.UID{"a": uid})
			time.Sleep(3 * shortWatch) // repeated
			if diff := cmp.Diff(map[string]types.UID{"a": uid}, held(informer)); diff != "" {
				b.Errorf("cache (-want +got):\n%s", diff)
			}
			b.configMapServer.create("b", uid)
			synctest.Wait()
			if diff := cmp.Diff(map[string]types.UID{"a": uid, "b": uid}, held(informer)); diff != "" {
				b.Errorf("cache after a change (-want +got):\n%s", diff)
			}
		}
		select {
		case <-changed:
			b.Error("reported as not served in between")
		default:
		}
		if logged := b.logged(); len(logged) > 0 {
			b.Errorf("logged: %q, want nothing", logged)
		}
	})
}

func TestFlappingAPIIsServedWithoutDelay(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		for _, uid := range []types.UID{"2", "3", "4", "5", "6", "7", "8"} {
			b.configMapServer.answer(notFound)
			b.configMapServer.replace(map[string]types.UID{"a": uid})
			time.Sleep(3500 * time.Millisecond)
			expectServed(b, "when it has gone", notFound)
			b.configMapServer.answer(nil)
			time.Sleep(retryPeriod) // repeated
			expectServed(b, "when it is back", nil)
			if diff := cmp.Diff(map[string]types.UID{"a": uid}, held(informer)); diff != "" {
				b.Errorf("cache (-want +got):\n%s", diff)
			}
		}
	})
}

func TestShortWatchIsNotAFailure(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		store := func(obj any) (any, error) {
			time.Sleep(shortWatch / 3) // some latency
			return obj, nil
		}
		informer := b.configMaps(WithTransform(store))
		b.factory.Start(b.ctx)
		b.waitForSync()
		synctest.Wait()
		for range 5 {
			b.configMapServer.close()
			time.Sleep(2 * shortWatch)
			begin, want := time.Now(), b.configMapServer.version+1
			b.configMapServer.create("a", "2")
			time.Sleep(shortWatch)
			if got := informer.GetStore().LastStoreSyncResourceVersion(); got != strconv.Itoa(want) {
				b.Errorf("version %d is not in the cache after %v", want, time.Since(begin))
			}
		}
		if logged := b.logged(); len(logged) > 0 {
			b.Errorf("logged: %q, want nothing", logged)
		}
	})
}

// An API server that restarts while a resource is denied leaves the informer with an error
// and a watch that it tries to resume.
func TestOtherErrorsKeepDenial(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		b.configMapServer.answer(forbidden)
		b.configMapServer.close()
		time.Sleep(time.Minute)
		b.configMapServer.answer(apierrors.NewTooManyRequests("just started", 1)) // the watch is retried
		time.Sleep(time.Minute)
		expectServed(b, "while the API server starts", forbidden)
		b.configMapServer.objects["a"] = "2"
		b.configMapServer.version++
		b.configMapServer.answer(nil)
		time.Sleep(5 * time.Minute)
		expectServed(b, "at last", nil)
		if diff := cmp.Diff(map[string]types.UID{"a": "2"}, held(informer)); diff != "" {
			b.Errorf("cache (-want +got):\n%s", diff)
		}
	})
}

func TestOutageEndsWithinOneSecond(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.err, b.secretServer.err = unreachable, unreachable
		b.configMaps()
		b.secrets()
		b.factory.Start(b.ctx)
		time.Sleep(time.Hour + time.Second/2)
		if logged := slices.Compact(b.logged()); !slices.Equal(logged, []string{"!API server cannot be reached"}) {
			b.Errorf("logged %q, want only that the API server cannot be reached", logged)
		}
		b.configMapServer.answer(nil)
		b.secretServer.answer(nil)
		begin := time.Now()
		if !b.waitForSync() || time.Since(begin) > retryPeriod+10*time.Millisecond {
			b.Errorf("read %v after the API server returned", time.Since(begin))
		}
	})
}

// pages is a source that lists two pages.
type pages struct{ *apiServer }

func (s pages) List(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	list, err := s.apiServer.List(ctx, options)
	if err == nil && options.Continue == "" {
		list.Continue = "more"
	}
	return list, err
}

func TestPagedListCountsAfterLastPage(t *testing.T) {
	i := newIdleInformer()
	p := retryingListerWatcher[*corev1.ConfigMapList]{source: pages{&apiServer{lists: true}}, informer: i}
	for _, page := range []struct {
		token string
		last  bool
	}{{"", false}, {"more", true}} {
		if _, err := p.list(t.Context(), metav1.ListOptions{Continue: page.token}); err != nil {
			t.Fatal(err)
		}
		if i.mustRelist() == page.last {
			t.Errorf("after the page %q: list complete: %t, want %t", page.token, !page.last, page.last)
		}
	}
}

func TestNoRetriesAfterShutdown(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.err = notFound
		b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute + time.Second/2)
		begin := time.Now()
		b.factory.Shutdown()
		if took := time.Since(begin); took > 0 {
			b.Errorf("Shutdown took %v, want none", took)
		}
		b.configMapServer.requested()
		time.Sleep(time.Minute)
		if got := b.configMapServer.requested(); len(got) > 0 {
			b.Errorf("%v after the end, want nothing", got)
		}
		if diff := cmp.Diff([]string{"Waiting for API"}, b.logged()); diff != "" {
			b.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestShutdownDuringOverload(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.err = apierrors.NewTooManyRequests("overloaded", 1)
		b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(3*time.Minute + time.Second/2)
		begin := time.Now()
		b.factory.Shutdown()
		if took := time.Since(begin); took > 0 {
			b.Errorf("Shutdown took %v, want none", took)
		}
	})
}

// expectServed expects the resource of ConfigMaps to be served, or not served with error want.
func expectServed(b *bubble, when string, want error) {
	b.Helper()
	synctest.Wait()
	time.Sleep(2 * catchUpPeriod)
	if err, _ := b.factory.Served(b.configMaps().GetStore()); !errors.Is(err, want) {
		b.Errorf("Served %s: %v, want %v", when, err, want)
	}
}

func TestRejectedStreamIsNotAFailure(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMapServer.refuses = true
		b.configMapServer.create("a", "1")
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		if got := held(informer); len(got) != 1 {
			b.Errorf("%v is cached, want one object", got)
		}
		if r := b.factory.Resources()[0]; !r.Served || r.Failure != nil {
			b.Errorf("served: %t, failure %v, want it served without failure", r.Served, r.Failure)
		}
		if logged := b.logged(); slices.Contains(logged, "!Reading failed") {
			b.Errorf("logged: %q", logged)
		}
	})
}
