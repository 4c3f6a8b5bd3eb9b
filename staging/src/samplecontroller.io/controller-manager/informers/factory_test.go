// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

func TestRequestedInformersStartOnce(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMaps()
		b.configMaps()
		b.factory.Start(b.ctx)
		b.factory.Start(b.ctx)
		if !b.waitForSync() {
			b.Error("the informers have not synced")
		}
		if got := b.configMapServer.requested(); got["list"]+got["watch+"] != 1 {
			b.Errorf("ConfigMaps were requested %v, want a list or its stream once", got)
		}
		if got := b.secretServer.requested(); len(got) > 0 {
			b.Errorf("Secrets were requested %v, want never: no caller requested them", got)
		}
		if logged := b.logged(); len(logged) > 0 {
			b.Errorf("logged: %q, want nothing", logged)
		}
	})
}

func TestNoRequestsBeforeStart(t *testing.T) {
	inBubble(t, func(b *bubble) {
		informer := b.configMaps()
		time.Sleep(time.Hour)
		if got := b.configMapServer.requested(); len(got) > 0 {
			b.Errorf("ConfigMaps were requested %v, want never", got)
		}
		if err := b.factory.Check(nil); err == nil {
			b.Error("Check succeeds before anything was started")
		}
		if err, _ := b.factory.Served(informer.GetStore()); !errors.Is(err, ErrNotSynced) {
			b.Errorf("Served: %v, want %v", err, ErrNotSynced)
		}
	})
}

func TestCheckNamesUnsyncedResources(t *testing.T) {
	inBubble(t, func(b *bubble) {
		if err := b.factory.Check(nil); err != nil {
			b.Errorf("Check of a factory without informers: %v", err)
		}
		b.sendBookmarks()
		b.configMapServer.err, b.secretServer.err = unreachable, unreachable
		b.secrets()
		b.configMaps()
		b.factory.Start(b.ctx)

		expect := func(when, want string) {
			b.Helper()
			time.Sleep(10 * time.Minute) // covers client-go's backoff
			got := ""
			if err := b.factory.Check(nil); err != nil {
				got = err.Error()
			}
			if got != want {
				b.Errorf("Check %s: %q, want %q", when, got, want)
			}
		}
		why := ": " + unreachable.Error()
		expect("at first", "not yet synced: configmaps"+why+"; not yet synced: secrets"+why)
		b.configMapServer.answer(nil)
		expect("when one has synced", "not yet synced: secrets"+why)
		b.secretServer.answer(nil)
		expect("when all have", "")
	})
}

func TestSecondStartStartsNewInformers(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMaps()
		b.factory.Start(b.ctx)
		b.secrets()
		synctest.Wait()
		if err := b.factory.Check(nil); err == nil || !strings.Contains(err.Error(), "secrets") {
			b.Errorf("Check: %v, want the unstarted informer in it", err)
		}
		b.factory.Start(b.ctx)
		if !b.waitForSync() {
			b.Error("the informers have not synced")
		}
		// Shutdown stops the informers of both starts; otherwise it would wait forever.
		b.factory.Shutdown()
	})
}

func TestStoreResourceName(t *testing.T) {
	inBubble(t, func(b *bubble) {
		for want, store := range map[string]cache.Store{
			"configmaps": b.configMaps().GetStore(),
			"secrets":    b.secrets().GetStore(),
			"":           cache.NewStore(cache.MetaNamespaceKeyFunc),
		} {
			if got := b.factory.Resource(store); got != want {
				b.Errorf("resource %q, want %q", got, want)
			}
		}
	})
}

func TestShutdownStopsInformers(t *testing.T) {
	inBubble(t, func(b *bubble) {
		informer := b.configMaps()
		b.factory.Start(b.ctx)
		synctest.Wait()
		b.factory.Shutdown()
		if !informer.IsStopped() {
			b.Error("the informer still runs after Shutdown has returned")
		}
		b.factory.Shutdown() // may be called twice
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.configMaps()
		b.factory.Shutdown()
		b.factory.Start(b.ctx)
		synctest.Wait()
		if got := b.configMapServer.requested(); len(got) > 0 {
			b.Error("an informer was started after Shutdown")
		}
	})
}

func TestInformersStopWithContext(t *testing.T) {
	inBubble(t, func(b *bubble) {
		informer := b.configMaps()
		ctx, cancel := context.WithCancel(b.ctx)
		b.factory.Start(ctx)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !informer.IsStopped() {
			b.Error("the informer still runs after its context has ended")
		}
	})
}

func TestWaitUntilSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		configMaps, secrets error
		settles             bool
	}{
		"served":                     {nil, nil, true},
		"CRD is missing":             {nil, notFound, true},
		"permission is missing":      {nil, forbidden, true},
		"broken":                     {nil, broken, true},
		"connections of one break":   {nil, unreachable, true},
		"server cannot be reached":   {unreachable, unreachable, false},
		"all broken":                 {broken, broken, false},
		"one missing, one broken":    {notFound, broken, false},
		"one missing, one not there": {notFound, unreachable, false},
		"all missing":                {notFound, notFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.configMapServer.err, b.secretServer.err = unreachable, unreachable
				b.configMaps()
				b.secrets()
				b.factory.Start(b.ctx)
				ctx, cancel := context.WithTimeout(b.ctx, time.Hour)
				defer cancel()
				answered := time.Now().Add(10 * time.Minute)
				time.AfterFunc(10*time.Minute,
					func() { b.configMapServer.answer(tc.configMaps); b.secretServer.answer(tc.secrets) })
				if got := b.factory.WaitUntilSettled(ctx); got != tc.settles {
					b.Errorf("WaitUntilSettled = %t, want %t", got, tc.settles)
				}
				if took := time.Since(answered); tc.settles && (took < 0 || took > 2*time.Minute) {
					b.Errorf("WaitUntilSettled returned %v after the API server had answered", took)
				}
			})
		})
	}
}

func TestBrokenResourceIsReported(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.sendBookmarks()
		b.secretServer.err = broken
		b.configMaps()
		informer := b.secrets()
		expect := func(when string, served bool, failure error) {
			b.Helper()
			synctest.Wait()
			r := b.factory.Resources()[1]
			if r.Name() != "secrets" || r.Served != served || !errors.Is(r.Failure, failure) {
				b.Errorf("%s: %s, served: %t, failure %v, want served: %t, failure %v", when, r.Name(), r.Served, r.Failure, served, failure)
			}
			err, _ := b.factory.Served(informer.GetStore())
			if !served && (!errors.Is(err, ErrNotSynced) || !errors.Is(err, failure)) {
				b.Errorf("%s: Served: %v, want %v and %v", when, err, ErrNotSynced, failure)
			}
			if err := b.factory.Check(nil); err != nil {
				b.Errorf("Check %s: %v, want none, because another replica could do no better", when, err)
			}
		}
		b.factory.Start(b.ctx)
		time.Sleep(time.Minute)
		expect("while it is broken", false, broken)
		b.secretServer.answer(nil)
		time.Sleep(2 * time.Minute) // covers client-go's backoff
		expect("when it works", true, nil)
		b.secretServer.answer(broken)
		b.secretServer.close()
		time.Sleep(time.Minute)
		expect("when it is broken again", true, broken)
		b.secretServer.answer(notFound)
		time.Sleep(2 * time.Minute)
		if r := b.factory.Resources()[1]; r.Served || r.Failure != nil || !apierrors.IsNotFound(r.Err) {
			b.Errorf("after its API was removed: %+v, want only that error", r)
		}
	})
}

func TestUndoRemovesInformersThatAreNotStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		start bool
		want  []string
	}{
		"not started": {false, []string{"configmaps"}},
		"started":     {true, []string{"configmaps", "secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.configMaps()
				undo := b.factory.Undo()
				b.secrets()
				if tc.start {
					b.factory.Start(b.ctx)
				}
				undo()
				var left []string
				for _, r := range b.factory.Resources() {
					left = append(left, r.Name())
				}
				if !slices.Equal(left, tc.want) {
					b.Errorf("Undo left the informers of %q, want %q", left, tc.want)
				}
			})
		})
	}
}

func TestCheckFailsOnMissingPermissionOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string // substrings of the error; none if ready
	}{
		"CRD is missing":        {notFound, nil},
		"permission is missing": {forbidden, []string{"not permitted to", "secrets", "no rule allows it"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.secretServer.err = tc.err
				b.configMaps()
				b.secrets()
				b.factory.Start(b.ctx)
				time.Sleep(time.Minute)
				err := b.factory.Check(nil)
				if (err != nil) != (tc.want != nil) {
					b.Errorf("Check: %v", err)
				}
				verb := "watch"
				if b.secretServer.lists {
					verb = "list"
				}
				for _, want := range append(tc.want, verb) {
					if err != nil && !strings.Contains(err.Error(), want) {
						b.Errorf("Check: %q, want it to contain %q", err, want)
					}
				}

				// After the first sync, losing the resource does not affect readiness.
				b.secretServer.answer(nil)
				time.Sleep(13 * time.Second)
				b.secretServer.answer(tc.err)
				b.secretServer.close()
				time.Sleep(time.Minute)
				if err, _ := b.factory.Served(b.secrets().GetStore()); !errors.Is(err, tc.err) || !apierrors.IsNotFound(err) &&
					!apierrors.IsForbidden(err) {
					b.Errorf("Served: %v, want the API server's %v", err, tc.err)
				}
				if err := b.factory.Check(nil); err != nil {
					b.Errorf("Check after it had synced: %v", err)
				}
			})
		})
	}
}

func TestSilentWatchIsUnhealthy(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.secretServer.err = notFound // so it has no watch
		b.configMaps()
		b.secrets()
		b.factory.Start(b.ctx)
		expect := func(when string, healthy bool) {
			b.Helper()
			switch err := b.factory.CheckWatches(); {
			case healthy && err != nil:
				b.Errorf("%s: %v", when, err)
			case !healthy && (err == nil || !strings.HasPrefix(err.Error(), "the watch of configmaps has been silent since ")):
				b.Errorf("%s: %v, want it to name configmaps", when, err)
			}
		}
		expect("before it is served", true)
		for i := range 10 {
			time.Sleep(3*time.Minute - time.Second)
			expect("while it says something in time", true)
			b.configMapServer.create(fmt.Sprint(i), "1")
			synctest.Wait()
		}
		time.Sleep(3*time.Minute + time.Second)
		expect("after 3 minutes of silence", false)
		b.configMapServer.create("again", "1")
		synctest.Wait()
		expect("when it says something again", true)
	})
}
