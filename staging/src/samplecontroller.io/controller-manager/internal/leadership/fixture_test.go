// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The configuration of all elections in these tests.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	writeTimeout  = 3 * time.Second
	validity      = 11 * time.Second // after a renewal
)

// apiServer stores one Lease as the API server does: a write with an outdated
// resourceVersion is a conflict.
type apiServer struct {
	mutex   sync.Mutex
	lease   *coordinationv1.Lease // nil if there is none
	version int
	writes  []write
	watches map[*watch.RaceFreeFakeWatcher]bool
}

// write is one committed write.
type write struct {
	by     string // the identity of the client
	holder string // of the Lease, afterwards
	at     time.Time
}

func (s *apiServer) get() (*coordinationv1.Lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "lease")
	}
	return s.lease.DeepCopy(), nil
}

func (s *apiServer) create(by string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lease != nil {
		return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), "lease")
	}
	return s.commit(by, lease), nil
}

func (s *apiServer) update(by string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "lease")
	}
	if lease.ResourceVersion != s.lease.ResourceVersion {
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", nil)
	}
	return s.commit(by, lease), nil
}

func (s *apiServer) commit(by string, lease *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.TypeMeta = metav1.TypeMeta{} // as a client decodes it
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	s.writes = append(s.writes, write{by, ptr.Deref(lease.Spec.HolderIdentity, ""), time.Now()})
	for w := range s.watches {
		w.Modify(s.lease.DeepCopy())
	}
	return s.lease.DeepCopy()
}

// remove deletes the Lease.
func (s *apiServer) remove() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	deleted := s.lease.DeepCopy()
	deleted.ResourceVersion = strconv.Itoa(s.version)
	s.lease = nil
	for w := range s.watches {
		w.Delete(deleted.DeepCopy())
	}
}

// edit changes the Lease as a user with kubectl does.
func (s *apiServer) edit(change func(*coordinationv1.Lease)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lease := s.lease.DeepCopy()
	change(lease)
	s.commit("kubectl", lease)
}

// watch opens a watch, which starts with the current Lease.
func (s *apiServer) watch() *watch.RaceFreeFakeWatcher {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w := watch.NewRaceFreeFake()
	if s.lease != nil {
		w.Add(s.lease.DeepCopy())
	}
	if s.watches == nil {
		s.watches = map[*watch.RaceFreeFakeWatcher]bool{}
	}
	s.watches[w] = true
	return w
}

// forget sends no more events to the watch.
func (s *apiServer) forget(w *watch.RaceFreeFakeWatcher) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.watches, w)
}

// put overwrites the Lease unconditionally, as if holder had just renewed it.
func (s *apiServer) put(holder string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := metav1.NowMicro()
	s.commit(holder, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lease"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &holder,
			LeaseDurationSeconds: ptr.To(int32(leaseDuration / time.Second)),
			AcquireTime:          &now,
			RenewTime:            &now,
		},
	})
}

// holder returns the holder of the Lease, "" if it is free, "none" if there is no Lease.
func (s *apiServer) holder() string {
	lease, err := s.get()
	if err != nil {
		return "none"
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// writesBy returns the number of committed writes of the client.
func (s *apiServer) writesBy(client string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := 0
	for _, w := range s.writes {
		if w.by == client {
			n++
		}
	}
	return n
}

// client is the client of one candidate.
type client struct {
	coordinationv1client.LeaseInterface // its other methods are never called
	server                              *apiServer
	identity                            string

	mutex         sync.Mutex
	before, after hook
	requests      map[string]int // by verb
	watching      *watch.RaceFreeFakeWatcher
}

// hook runs at a request. The request fails with its error.
type hook func(ctx context.Context, verb string) error

func noHook(context.Context, string) error { return nil }

// beforeEach sets the hook that runs before each request is handled.
func (c *client) beforeEach(before hook) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.before = before
}

// afterEach sets the hook that runs after each committed request.
func (c *client) afterEach(after hook) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.after = after
}

// cutOff makes every request fail and ends the watch.
func (c *client) cutOff() {
	c.beforeEach(func(context.Context, string) error { return errUnreachable })
	c.endWatch()
}

// endWatch ends the watch, as the API server does from time to time.
func (c *client) endWatch() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.watching != nil {
		c.server.forget(c.watching)
		c.watching.Stop()
	}
}

// silenceWatch makes the current watch silent without closing it.
func (c *client) silenceWatch() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server.forget(c.watching)
}

// count returns the number of requests of a verb.
func (c *client) count(verb string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests[verb]
}

// heal makes requests succeed again.
func (c *client) heal() { c.beforeEach(noHook) }

var errUnreachable = errors.New("connection refused")

func (c *client) Leases(string) coordinationv1client.LeaseInterface { return c }

func (c *client) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return c.do(ctx, "get", c.server.get)
}

func (c *client) Create(ctx context.Context, lease *coordinationv1.Lease,
	_ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return c.do(ctx, "create", func() (*coordinationv1.Lease, error) { return c.server.create(c.identity, lease) })
}

func (c *client) Update(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease")) // as a real client does to encode it
	if len(options.DryRun) > 0 {
		return c.do(ctx, "try", c.server.get)
	}
	return c.do(ctx, "update", func() (*coordinationv1.Lease, error) { return c.server.update(c.identity, lease) })
}

func (c *client) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if want := "metadata.name=lease"; options.FieldSelector != want {
		return nil, fmt.Errorf("watches %q, want %q", options.FieldSelector, want)
	}
	_, err := c.do(ctx, "watch", func() (*coordinationv1.Lease, error) { return nil, nil })
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.watching = c.server.watch()
	return c.watching, nil
}

func (c *client) do(ctx context.Context, verb string,
	request func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.mutex.Lock()
	before, after := c.before, c.after
	if c.requests == nil {
		c.requests = map[string]int{}
	}
	c.requests[verb]++
	c.mutex.Unlock()
	if err := before(ctx, verb); err != nil {
		return nil, err
	}
	lease, err := request()
	if err != nil {
		return nil, err
	}
	return lease, after(ctx, verb)
}

// candidate is one process that campaigns.
type candidate struct {
	*Election
	client *client
	ctx    context.Context
	stop   context.CancelFunc
	log    ktesting.Buffer
	done   chan error
}

// newCandidate returns a candidate of that identity. change may change its configuration.
func newCandidate(t *testing.T, server *apiServer, identity string, change ...func(*Config)) *candidate {
	t.Helper()
	c := &candidate{client: &client{server: server, identity: identity, before: noHook, after: noHook},
		done: make(chan error, 1)}
	config := Config{
		Namespace:     "default",
		Name:          "lease",
		Identity:      identity,
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Gate:          NewGate(writeTimeout),
		Client:        c.client,
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	if c.Election, err = New(config); err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	c.log = logger.GetSink().(ktesting.Underlier).GetBuffer()
	c.ctx, c.stop = context.WithCancel(klog.NewContext(t.Context(), logger))
	t.Cleanup(c.stop)
	return c
}

// run campaigns in the background; wait returns the result of Run.
func (c *candidate) run(lead func(*Term) error) {
	go func() { c.done <- c.Run(c.ctx, lead) }()
	synctest.Wait()
}

func (c *candidate) wait() error { return <-c.done }

// errors returns the messages of the logged errors.
func (c *candidate) errors() []string {
	var messages []string
	for _, entry := range c.log.Data() {
		if entry.Type == ktesting.LogError {
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// pass lets time pass and waits until everything due by then has happened.
func pass(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

// untilTheEnd is work that drains immediately.
func untilTheEnd(term *Term) error {
	<-term.Ctx.Done()
	return nil
}

// never is work that must not be called.
func never(t *testing.T) func(*Term) error {
	return func(*Term) error {
		t.Error("led unexpectedly")
		return nil
	}
}

// inBubble runs a test in a synctest bubble. There time passes only when every goroutine
// waits, and the test fails if one leaks.
func inBubble(t *testing.T, test func(*testing.T, *apiServer)) {
	synctest.Test(t, func(t *testing.T) { test(t, &apiServer{}) })
}
