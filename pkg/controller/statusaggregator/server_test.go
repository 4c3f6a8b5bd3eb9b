// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	icecreamv1alpha1apply "samplecontroller.io/client-go/applyconfiguration/icecream/v1alpha1"
	samplev1alpha1apply "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// testObject is a Foo or an Icecream.
type testObject interface {
	metav1.Object
	runtime.Object
}

// server is an API server for the objects of one kind: it assigns resourceVersions, sends
// watch events and refuses writes to another version or UID.
type server struct {
	*cachetesting.FakeControllerSource

	mutex  sync.Mutex
	begin  time.Time
	writes []write
	refuse error         // error of each write, if set
	late   bool          // the watch does not report writes
	lists  int           // reads of one object
	slow   time.Duration // how long a write takes; set before the first write
	delay  time.Duration // time from the write to its response; set before the first write
}

// errPanics makes a refused write panic.
var errPanics = errors.New("panics")

// noSummary is the summary of a write that removes it.
const noSummary = "(no summary)"

// write is one status write, refused or not.
type write struct {
	// After is the time since the controller was started.
	After   time.Duration
	Summary string
	// Err is the reason of the refusal.
	Err metav1.StatusReason
}

// IsWatchListSemanticsUnSupported makes the informer list first, then watch.
func (*server) IsWatchListSemanticsUnSupported() bool { return true }

// object returns the object with the name, nil if there is none.
func (s *server) object(namespace, name string) testObject {
	list, err := s.List(metav1.ListOptions{})
	if err != nil {
		panic(err) // the source never fails
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		panic(err)
	}
	for _, item := range items {
		if o := item.(testObject); o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

// apply handles an apply of the Pod summary in an object's status.
func (s *server) apply(namespace, name, resourceVersion string, pods *workloadv1alpha1.PodSummary, options metav1.ApplyOptions) (testObject, error) {
	time.Sleep(s.slow)
	defer time.Sleep(s.delay) // deferred first, so it runs last
	s.mutex.Lock()
	defer s.mutex.Unlock()
	o, err := s.answer(namespace, name, resourceVersion, options)
	summary := noSummary
	if pods != nil {
		summary = pods.Summary
	}
	s.writes = append(s.writes, write{time.Since(s.begin), summary, apierrors.ReasonForError(err)})
	if err != nil {
		return nil, err
	}
	*podsOf(o) = pods.DeepCopy()
	if s.late {
		s.ModifyDropWatch(o)
	} else {
		s.Modify(o)
	}
	return s.object(namespace, name), nil
}

func (s *server) answer(namespace, name, resourceVersion string, options metav1.ApplyOptions) (testObject, error) {
	if options.FieldManager != "status-aggregator-controller" || !options.Force {
		return nil, apierrors.NewBadRequest("not forced by status-aggregator-controller")
	}
	if s.refuse == errPanics {
		panic(s.refuse)
	}
	if s.refuse != nil {
		return nil, s.refuse
	}
	o := s.object(namespace, name)
	if o == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	if o.GetResourceVersion() != resourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{}, name, errors.New("it was changed"))
	}
	return o, nil
}

// made returns the writes so far, and forgets them.
func (s *server) made() []write {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	made := s.writes
	s.writes = nil
	return made
}

// refuseWith makes all writes fail with an error. nil stops that.
func (s *server) refuseWith(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.refuse = err
}

// setLate sets whether the watch omits writes.
func (s *server) setLate(late bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.late = late
}

// one lists the object that the field selector names. It returns nil if there is none.
func (s *server) one(namespace string, o metav1.ListOptions) testObject {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lists++
	return s.object(namespace, strings.TrimPrefix(o.FieldSelector, "metadata.name="))
}

// read returns the number of reads of one object so far, and forgets them.
func (s *server) read() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lists := s.lists
	s.lists = 0
	return lists
}

// podsOf points to the Pod summary in the status of an object.
func podsOf(o runtime.Object) **workloadv1alpha1.PodSummary {
	if foo, ok := o.(*samplev1alpha1.Foo); ok {
		return &foo.Status.Pods
	}
	return &o.(*icecreamv1alpha1.Icecream).Status.Pods
}

// fooClient writes statuses of Foos to a server.
type fooClient struct {
	samplev1alpha1client.FooInterface
	*server
	namespace string
}

func (c fooClient) Foos(namespace string) samplev1alpha1client.FooInterface {
	c.namespace = namespace
	return c
}

func (c fooClient) List(_ context.Context, o metav1.ListOptions) (*samplev1alpha1.FooList, error) {
	list := &samplev1alpha1.FooList{}
	if foo, ok := c.one(c.namespace, o).(*samplev1alpha1.Foo); ok {
		list.Items = append(list.Items, *foo)
	}
	return list, nil
}

func (c fooClient) ApplyStatus(_ context.Context, foo *samplev1alpha1apply.FooApplyConfiguration, o metav1.ApplyOptions) (*samplev1alpha1.Foo, error) {
	applied, err := c.apply(*foo.Namespace, *foo.Name, *foo.ResourceVersion, foo.Status.Pods, o)
	if err != nil {
		return nil, err
	}
	return applied.(*samplev1alpha1.Foo), nil
}

// icecreamClient writes statuses of Icecreams to a server.
type icecreamClient struct {
	icecreamv1alpha1client.IcecreamInterface
	*server
	namespace string
}

func (c icecreamClient) Icecreams(namespace string) icecreamv1alpha1client.IcecreamInterface {
	c.namespace = namespace
	return c
}

func (c icecreamClient) List(_ context.Context, o metav1.ListOptions) (*icecreamv1alpha1.IcecreamList, error) {
	list := &icecreamv1alpha1.IcecreamList{}
	if icecream, ok := c.one(c.namespace, o).(*icecreamv1alpha1.Icecream); ok {
		list.Items = append(list.Items, *icecream)
	}
	return list, nil
}

func (c icecreamClient) ApplyStatus(_ context.Context, icecream *icecreamv1alpha1apply.IcecreamApplyConfiguration, o metav1.ApplyOptions) (*icecreamv1alpha1.Icecream, error) {
	applied, err := c.apply(*icecream.Namespace, *icecream.Name, *icecream.ResourceVersion, icecream.Status.Pods, o)
	if err != nil {
		return nil, err
	}
	return applied.(*icecreamv1alpha1.Icecream), nil
}
