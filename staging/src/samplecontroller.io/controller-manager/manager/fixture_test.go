// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/grpclog"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/options"
)

func TestMain(m *testing.M) {
	if controllers := os.Getenv(asProgram); controllers != "" {
		os.Exit(runAsProgram(controllers))
	}
	// Tests run several commands in one process, which can set up logging only once.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	// Goroutines of gRPC read klog's logger, which tests set.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// resetLog lets the test set a logger, and the next command set up logging again after it. The flush daemon reads the
// logger without a lock, so it must not run meanwhile.
func resetLog(t testing.TB) {
	t.Helper()
	klog.StopFlushDaemon()
	t.Cleanup(func() {
		klog.StopFlushDaemon()
		klog.ClearLogger()
		if err := logsapi.ResetForTest(nil); err != nil {
			t.Error(err)
		}
		klog.StopFlushDaemon() // of the default settings
	})
}

// history records what happens, in order.
type history struct {
	mutex sync.Mutex
	lines []string
}

func (h *history) add(line string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.lines = append(h.lines, line)
}

func (h *history) all() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.lines)
}

// fake is a controller that records when it runs, and calls run if it is set.
type fake struct {
	name    string
	history *history
	run     func(ctx context.Context) error
}

func (f *fake) Name() string { return f.name }

func (f *fake) Run(ctx context.Context) error {
	f.history.add(f.name + " begins")
	defer f.history.add(f.name + " ends")
	if f.run != nil {
		return f.run(ctx)
	}
	<-ctx.Done()
	time.Sleep(time.Minute) // a sync in progress
	return nil
}

// leases keeps one Lease in memory and records when its holder changes.
type leases struct {
	coordinationv1client.LeaseInterface // the other methods are never called
	history                             *history

	mutex   sync.Mutex
	lease   *coordinationv1.Lease
	version int
	refusal error // error of every write; nil: none
}

func (l *leases) Leases(string) coordinationv1client.LeaseInterface { return l }

func (l *leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lease.DeepCopy(), nil
}

func (l *leases) Update(_ context.Context, lease *coordinationv1.Lease,
	options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if len(options.DryRun) > 0 {
		return lease, nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.refusal != nil {
		return nil, l.refusal
	}
	if was, is := ptr.Deref(l.lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.HolderIdentity, ""); was != is {
		l.history.add(fmt.Sprintf("lease passes from %q to %q", was, is))
	}
	if lease.ResourceVersion != l.lease.ResourceVersion {
		return nil, errConflict
	}
	l.lease = lease.DeepCopy()
	l.changed()
	return l.lease.DeepCopy(), nil
}

var errConflict = apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", nil)

// changed increments the resourceVersion of the Lease.
func (l *leases) changed() {
	l.version++
	l.lease.ResourceVersion = strconv.Itoa(l.version)
}

// Watch sends no events, so the holder sees changes only when it renews.
func (l *leases) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewRaceFreeFake(), nil
}

// give gives the Lease to another holder, and makes all writes fail.
func (l *leases) give(holder string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lease.Spec.HolderIdentity = &holder
	l.lease.Spec.LeaseDurationSeconds = ptr.To(int32(2 * 60 * 60))
	l.refusal = errConflict
	l.changed()
}

// annotations returns the annotations of the Lease.
func (l *leases) annotations() map[string]string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.lease.Annotations)
}

// annotate adds an annotation, like another process.
func (l *leases) annotate(key, value string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	metav1.SetMetaDataAnnotation(&l.lease.ObjectMeta, key, value)
	l.changed()
}

// take takes the Lease away from the other holder.
func (l *leases) take() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lease.Spec.HolderIdentity, l.lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To(int32(1))
	l.refusal = nil
	l.changed()
}

// testProcess is a process for a synctest bubble. It serves nothing, because a bubble has no
// network.
type testProcess struct {
	history  *history
	leases   *leases
	source   *source
	informer cache.TypedSharedIndexInformer[*corev1.ConfigMap]
	parts    parts
}

func newProcess(t *testing.T) *testProcess {
	t.Helper()
	server := &source{}
	p := &testProcess{history: &history{}, source: server}
	p.leases = &leases{history: p.history, lease: &coordinationv1.Lease{}}
	p.parts.config = &options.Config{Options: &options.Options{Generic: &options.GenericOptions{}}}
	p.parts.shared = &controller.Shared{Informers: informers.NewFactory()}
	p.informer = informers.InformerFor[*corev1.ConfigMap](p.parts.shared.Informers,
		corev1.SchemeGroupVersion.WithResource("configmaps"), server)
	election, err := leadership.New(leadership.Config{
		Namespace: "default", Name: "lease", Identity: "me", Client: p.leases,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.parts.election = election
	p.parts.controllers = []controller.Controller{&fake{name: "foo-controller", history: p.history}}
	return p
}

// run runs the process until the returned function is called, which returns the error of run.
func (p *testProcess) run(t *testing.T) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := run(ctx, p.parts)
		p.history.add("process ends")
		done <- err
	}()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// source is the source of the informer. It has no ConfigMaps.
type source struct {
	open  chan struct{} // List blocks until it is closed; nil: List does not block
	watch *watch.RaceFreeFakeWatcher
	err   atomic.Pointer[apierrors.StatusError] // of all requests
}

// fail ends the watch, and makes all requests fail.
func (s *source) fail() {
	s.err.Store(apierrors.NewInternalError(errors.New("conversion webhook failed")))
	s.watch.Stop()
}

// sign sends a bookmark to the watch.
func (s *source) sign() { s.watch.Action(watch.Bookmark, &corev1.ConfigMap{}) }

// hold makes lists wait until release.
func (s *source) hold() { s.open = make(chan struct{}) }

func (s *source) release() { close(s.open) }

func (s *source) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if s.open != nil {
		<-s.open
	}
	if err := s.err.Load(); err != nil {
		return nil, err
	}
	return &corev1.ConfigMapList{}, nil
}

func (s *source) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if err := s.err.Load(); err != nil {
		return nil, err
	}
	s.watch = watch.NewRaceFreeFake()
	return s.watch, nil
}

// IsWatchListSemanticsUnSupported makes the informer list first, then watch.
func (*source) IsWatchListSemanticsUnSupported() bool { return true }

// status returns the status code of a GET. It accepts self-signed certificates.
func status(url string) (int, error) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}
