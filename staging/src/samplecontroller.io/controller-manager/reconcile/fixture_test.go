// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const loopName = "test-controller"

// apiServer is the source of an informer. The informer watches the changes that a test makes
// in it.
type apiServer struct {
	*cachetesting.FakeControllerSource
}

// IsWatchListSemanticsUnSupported makes the informer list first, then watch.
func (apiServer) IsWatchListSemanticsUnSupported() bool { return true }

// bubble is the environment of a test in a synctest bubble. There, time passes only while
// every goroutine waits, and the test fails if one is left at its end.
type bubble struct {
	*testing.T
	ctx      context.Context
	server   apiServer
	informer *watchedInformer
	log      ktesting.Buffer
}

// inBubble runs a test in a bubble, with an informer that has not started.
func inBubble(t *testing.T, resync time.Duration, test func(*bubble)) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		server := apiServer{cachetesting.NewFakeControllerSource()}
		t.Cleanup(server.Shutdown)
		test(&bubble{
			T:        t,
			ctx:      klog.NewContext(t.Context(), logger),
			server:   server,
			informer: newInformer(server, resync),
			log:      logger.GetSink().(ktesting.Underlier).GetBuffer(),
		})
	})
}

// watchedInformer is an informer that records the handlers added to it.
type watchedInformer struct {
	cache.TypedSharedIndexInformer[*corev1.ConfigMap]
	handlers []cache.TypedResourceEventHandler[*corev1.ConfigMap]
}

func newInformer(server cache.ListerWatcher, resync time.Duration) *watchedInformer {
	return &watchedInformer{
		TypedSharedIndexInformer: cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](
			cache.NewSharedIndexInformer(server, &corev1.ConfigMap{}, resync, nil)),
	}
}

func (i *watchedInformer) AddTypedEventHandler(handler cache.TypedResourceEventHandler[*corev1.ConfigMap],
	options ...cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return i.TypedSharedIndexInformer.AddTypedEventHandler(handler, options...)
}

// start starts an informer. At the end of the test it is stopped and joined.
func (b *bubble) start(informer cache.SharedInformer) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(ctx) })
	b.Cleanup(func() { cancel(); wg.Wait() })
}

// run calls Run of the loop and waits until the bubble is idle. The returned function stops
// the loop, and returns the error of Run.
func (b *bubble) run(l *Loop, workers int) (stop func() error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	l.workers = workers
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// logged returns the messages logged at the verbosity. -1 stands for errors.
func (b *bubble) logged(verbosity int) []string {
	var messages []string
	for _, entry := range b.log.Data() {
		if entry.Type == ktesting.LogError && verbosity == -1 || entry.Type == ktesting.LogInfo &&
			entry.Verbosity == verbosity {
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// syncs is a SyncFunc that records its calls.
type syncs struct {
	mutex sync.Mutex
	begin time.Time
	calls []call
	// result decides what a call returns; nil: success.
	result func(key string, nth int) (time.Duration, error)
}

// call is one call of the SyncFunc. after is the time since the first call.
type call struct {
	key   string
	after time.Duration
}

func (s *syncs) sync(_ context.Context, key cache.ObjectName) (time.Duration, error) {
	s.mutex.Lock()
	if s.begin.IsZero() {
		s.begin = time.Now()
	}
	s.calls = append(s.calls, call{key.String(), time.Since(s.begin)})
	nth := len(slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.key != key.String() }))
	s.mutex.Unlock()
	if s.result == nil {
		return 0, nil
	}
	return s.result(key.String(), nth)
}

// enqueued waits until the bubble is idle, and returns the keys that were synced since the
// last reset, sorted.
func (s *syncs) enqueued() []string {
	synctest.Wait()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var keys []string
	for _, c := range s.calls {
		keys = append(keys, c.key)
	}
	slices.Sort(keys)
	return keys
}

// reset discards all calls.
func (s *syncs) reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls, s.begin = nil, time.Time{}
}

// times returns when the key was synced, relative to the first sync of any key.
func (s *syncs) times(key string) []time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var times []time.Duration
	for _, c := range s.calls {
		if c.key == key {
			times = append(times, c.after)
		}
	}
	return times
}

// outcomes is an Observer that records outcomes.
type outcomes struct {
	mutex sync.Mutex
	all   []Outcome
}

func (o *outcomes) observe(_ context.Context, outcome Outcome) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.all = append(o.all, outcome)
}

// results returns the results of the key, in order.
func (o *outcomes) results(key string) []Result {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var results []Result
	for _, outcome := range o.all {
		if outcome.Key == key {
			results = append(results, outcome.Result)
		}
	}
	return results
}

// configMap returns a ConfigMap in namespace default. The keys of its data name its owners.
func configMap(name string, owners ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for _, owner := range owners {
		c.Data[owner] = ""
	}
	return c
}

// owners returns the keys of the owners of a ConfigMap.
func owners(c *corev1.ConfigMap) []cache.ObjectName {
	var keys []cache.ObjectName
	for owner := range c.Data {
		keys = append(keys, cache.NewObjectName(c.Namespace, owner))
	}
	return keys
}
