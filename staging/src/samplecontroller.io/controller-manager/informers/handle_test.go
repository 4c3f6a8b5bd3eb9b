// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer is the source of the informers of one resource. It answers a list only
// when it is opened.
type apiServer struct {
	*cachetesting.FakeControllerSource
	open  chan struct{}
	lists int
	err   error // the answer to a list, unless it is nil
}

func (s *apiServer) List(options metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	<-s.open
	if s.err != nil {
		return nil, s.err
	}
	return s.FakeControllerSource.List(options)
}

// IsWatchListSemanticsUnSupported has the informer list first, then watch.
func (*apiServer) IsWatchListSemanticsUnSupported() bool { return true }

// fixture has two factories, as for built-in and for custom resources, with one
// resource each.
type fixture struct {
	configMapServer, secretServer *apiServer
	configMaps                    func() cache.TypedSharedIndexInformer[*corev1.ConfigMap]
	secrets                       func() cache.TypedSharedIndexInformer[*corev1.Secret]
	handle                        *Handle
}

// inBubble runs a test in a synctest bubble, which fails if it leaves a goroutine.
func inBubble(t *testing.T, test func(*testing.T, *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		newServer := func() *apiServer {
			server := &apiServer{FakeControllerSource: cachetesting.NewFakeControllerSource(), open: make(chan struct{})}
			t.Cleanup(server.Shutdown)
			return server
		}
		f := &fixture{configMapServer: newServer(), secretServer: newServer()}
		one, two := kubeinformers.NewSharedInformerFactory(nil, 0), kubeinformers.NewSharedInformerFactory(nil, 0)
		f.configMaps = func() cache.TypedSharedIndexInformer[*corev1.ConfigMap] {
			return informerFor[*corev1.ConfigMap](one, f.configMapServer, &corev1.ConfigMap{})
		}
		f.secrets = func() cache.TypedSharedIndexInformer[*corev1.Secret] {
			return informerFor[*corev1.Secret](two, f.secretServer, &corev1.Secret{})
		}
		f.handle = NewHandle(one, two)
		test(t, f)
	})
}

func informerFor[T cache.Object](factory kubeinformers.SharedInformerFactory, server *apiServer, example runtime.Object) cache.TypedSharedIndexInformer[T] {
	return cache.NewTypedSharedIndexInformer[T](factory.InformerFor(example, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(server, example, resync, nil)
	}))
}

func TestOnlyWhatWasAskedForIsStartedAndOnlyOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		close(f.configMapServer.open)
		close(f.secretServer.open)
		Ask(f.handle, f.configMaps())
		Ask(f.handle, f.configMaps())
		f.handle.Start(t.Context())
		if !f.handle.WaitForSync(t.Context()) {
			t.Error("WaitForSync = false, want true")
		}
		if got := f.configMapServer.lists; got != 1 {
			t.Errorf("ConfigMaps were listed %d times, want once", got)
		}
		if got := f.secretServer.lists; got != 0 {
			t.Errorf("Secrets were listed %d times, want never: nobody asked for them", got)
		}
		f.handle.Shutdown()
	})
}

func TestNothingIsStartedBeforeStart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		Ask(f.handle, f.configMaps())
		synctest.Wait()
		if got := f.configMapServer.lists; got != 0 {
			t.Errorf("ConfigMaps were listed %d times, want never", got)
		}
		if err := f.handle.Check(nil); err == nil {
			t.Error("Check succeeds before anything was started")
		}
		f.handle.Shutdown()
	})
}

func TestCheckNamesWhatHasNotSynced(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		if err := f.handle.Check(nil); err != nil {
			t.Errorf("Check of a handle of which nothing was asked: %v", err)
		}
		Ask(f.handle, f.secrets())
		Ask(f.handle, f.configMaps())
		Ask(f.handle, f.secrets())
		f.handle.Start(t.Context())
		defer f.handle.Shutdown()

		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			got := ""
			if err := f.handle.Check(nil); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("Check %s: %q, want %q", when, got, want)
			}
		}
		expect("at first", "not yet synced: SharedIndexInformer *v1.ConfigMap, SharedIndexInformer *v1.Secret")
		close(f.configMapServer.open)
		expect("when one has synced", "not yet synced: SharedIndexInformer *v1.Secret")
		close(f.secretServer.open)
		expect("when all have", "")
	})
}

func TestWaitForSyncEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		Ask(f.handle, f.configMaps())
		f.handle.Start(t.Context())
		defer f.handle.Shutdown()
		defer close(f.configMapServer.open)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if f.handle.WaitForSync(ctx) {
			t.Error("WaitForSync = true, want false: nothing has synced")
		}
		if ctx.Err() == nil {
			t.Error("WaitForSync returned before its context had ended")
		}
	})
}

func TestInformersThatAreAskedForLaterAreStartedByAnotherStart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		close(f.configMapServer.open)
		close(f.secretServer.open)
		Ask(f.handle, f.configMaps())
		f.handle.Start(t.Context())
		Ask(f.handle, f.secrets())
		synctest.Wait()
		if err := f.handle.Check(nil); err == nil || !strings.Contains(err.Error(), "Secret") {
			t.Errorf("Check: %v, want one that names the informer that was not started", err)
		}
		f.handle.Start(t.Context())
		if !f.handle.WaitForSync(t.Context()) {
			t.Error("WaitForSync = false, want true")
		}
		// It stops those of both starts: else it would wait for ever.
		f.handle.Shutdown()
	})
}

func TestShutdownEndsInformersBeforeTheirContextDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		close(f.configMapServer.open)
		informer := Ask(f.handle, f.configMaps())
		f.handle.Start(t.Context())
		synctest.Wait()
		f.handle.Shutdown()
		if !informer.IsStopped() {
			t.Error("the informer still runs after Shutdown has returned")
		}
		f.handle.Shutdown() // a second time is no mistake
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		Ask(f.handle, f.configMaps())
		f.handle.Shutdown()
		f.handle.Start(t.Context())
		synctest.Wait()
		if f.configMapServer.lists != 0 {
			t.Error("an informer was started after Shutdown")
		}
	})
}

func TestInformersEndWithTheirContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		close(f.configMapServer.open)
		informer := Ask(f.handle, f.configMaps())
		ctx, cancel := context.WithCancel(t.Context())
		f.handle.Start(ctx)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !informer.IsStopped() {
			t.Error("the informer still runs after its context has ended")
		}
	})
}

func TestSettledIsWhatHasSyncedOrIsDenied(t *testing.T) {
	tests := map[string]struct {
		err     error
		settles bool
	}{
		"it is served":          {nil, true},
		"its CRD is missing":    {apierrors.NewNotFound(corev1.Resource("secrets"), ""), true},
		"permission is missing": {apierrors.NewForbidden(corev1.Resource("secrets"), "", nil), true},
		"the server is down":    {errors.New("connection refused"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fixture) {
				close(f.configMapServer.open)
				f.secretServer.err = tc.err
				Ask(f.handle, f.configMaps())
				Ask(f.handle, f.secrets())
				Ask(f.handle, f.secrets())
				f.handle.Start(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				answered := time.Now().Add(time.Minute)
				time.AfterFunc(time.Minute, func() { close(f.secretServer.open) })
				if got := f.handle.WaitUntilSettled(ctx); got != tc.settles {
					t.Errorf("WaitUntilSettled = %t, want %t", got, tc.settles)
				}
				if tc.settles && !time.Now().Equal(answered) {
					t.Error("WaitUntilSettled returned before the API server had answered, or long after")
				}
				f.handle.Shutdown()
			})
		})
	}
}
