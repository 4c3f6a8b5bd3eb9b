// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/leadership"
)

func TestMain(m *testing.M) {
	// Tests run several commands in one process, whose logs are set up but once.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// story is what happened, in order.
type story struct {
	mutex sync.Mutex
	lines []string
}

func (s *story) tell(line string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lines = append(s.lines, line)
}

func (s *story) told() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.lines)
}

// fake is a controller that tells when it runs, or does what run says.
type fake struct {
	name  string
	story *story
	run   func(ctx context.Context) error
}

func (f *fake) Name() string { return f.name }

func (f *fake) Run(ctx context.Context) error {
	f.story.tell(f.name + " begins")
	defer f.story.tell(f.name + " ends")
	if f.run != nil {
		return f.run(ctx)
	}
	<-ctx.Done()
	time.Sleep(time.Minute) // a sync in progress
	return nil
}

// leases keeps one Lease in memory and tells when its holder changes.
type leases struct {
	coordinationv1client.LeaseInterface // the rest of its methods is never called
	story                               *story

	mutex   sync.Mutex
	lease   *coordinationv1.Lease
	version int
	refusal error // of every write; nil: none
}

func (l *leases) Leases(string) coordinationv1client.LeaseInterface { return l }

func (l *leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lease.DeepCopy(), nil
}

func (l *leases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.refusal != nil {
		return nil, l.refusal
	}
	if was, is := ptr.Deref(l.lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.HolderIdentity, ""); was != is {
		l.story.tell(fmt.Sprintf("lease passes from %q to %q", was, is))
	}
	if lease.ResourceVersion != l.lease.ResourceVersion {
		return nil, errConflict
	}
	l.lease = lease.DeepCopy()
	l.changed()
	return l.lease.DeepCopy(), nil
}

var errConflict = apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", nil)

// changed gives the Lease another version.
func (l *leases) changed() {
	l.version++
	l.lease.ResourceVersion = strconv.Itoa(l.version)
}

// Watch tells nothing: the holder learns of what happens when it renews.
func (l *leases) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewRaceFreeFake(), nil
}

// give passes the Lease to another holder, who lets nobody else write it.
func (l *leases) give(holder string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lease.Spec.HolderIdentity = &holder
	l.lease.Spec.LeaseDurationSeconds = ptr.To(int32(2 * 60 * 60))
	l.refusal = errConflict
	l.changed()
}

// annotations returns those of the Lease.
func (l *leases) annotations() map[string]string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.lease.Annotations)
}

// annotate adds an annotation, as another process does.
func (l *leases) annotate(key, value string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	metav1.SetMetaDataAnnotation(&l.lease.ObjectMeta, key, value)
	l.changed()
}

// take takes the Lease away from it again.
func (l *leases) take() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lease.Spec.HolderIdentity, l.lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To(int32(1))
	l.refusal = nil
	l.changed()
}

// testProcess is a process that can be run in a synctest bubble: it serves nothing,
// because a bubble has no network.
type testProcess struct {
	story    *story
	leases   *leases
	source   *source
	informer cache.TypedSharedIndexInformer[*corev1.ConfigMap]
	config   process
}

func newProcess(t *testing.T) *testProcess {
	t.Helper()
	server := &source{}
	p := &testProcess{story: &story{}, source: server}
	p.leases = &leases{story: p.story, lease: &coordinationv1.Lease{}}
	p.config.Informers = informers.NewFactory()
	p.informer = informers.InformerFor[*corev1.ConfigMap](p.config.Informers, corev1.SchemeGroupVersion.WithResource("configmaps"), server)
	election, err := leadership.New(leadership.Config{
		Namespace: "default", Name: "lease", Identity: "me", Client: p.leases,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.config.Election = election
	p.config.Controllers = []controller.Controller{&fake{name: "foo-controller", story: p.story}}
	return p
}

// run runs the process until the returned function is called, which returns what
// run did.
func (p *testProcess) run(t *testing.T) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := run(ctx, p.config)
		p.story.tell("process ends")
		done <- err
	}()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// source is where the informer lists and watches. There are no ConfigMaps.
type source struct {
	open  chan struct{} // closed while lists are answered
	watch *watch.RaceFreeFakeWatcher
}

// sign has the watch give a sign of life.
func (s *source) sign() { s.watch.Action(watch.Bookmark, &corev1.ConfigMap{}) }

// hold has lists wait until release.
func (s *source) hold() { s.open = make(chan struct{}) }

func (s *source) release() { close(s.open) }

func (s *source) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if s.open != nil {
		<-s.open
	}
	return &corev1.ConfigMapList{}, nil
}

func (s *source) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.watch = watch.NewRaceFreeFake()
	return s.watch, nil
}

// IsWatchListSemanticsUnSupported has the informer list first, then watch.
func (*source) IsWatchListSemanticsUnSupported() bool { return true }

// status returns the status code of an answer of a server whose certificate is
// self-signed.
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
