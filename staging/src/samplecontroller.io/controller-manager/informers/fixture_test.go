// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")

	notFound  = apierrors.NewGenericServerResponse(404, "list", configMaps.GroupResource(), "", "", 0, true)
	forbidden = apierrors.NewForbidden(configMaps.GroupResource(), "", fmt.Errorf("no rule allows it"))
	broken    = apierrors.NewInternalError(errors.New("conversion webhook failed"))
	// unreachable is the error of client-go when the API server does not respond.
	unreachable = &url.Error{Op: "Get", URL: "https://api.test/api/v1", Err: errors.New("connection refused")}
)

// apiServer serves the objects of one resource to one informer like an API server: by lists,
// streams of initial events, and watches from a version. All objects are ConfigMaps, even
// those of other resources.
type apiServer struct {
	lists   bool // the client knows that streaming is not supported
	refuses bool // streaming is rejected, as by default before Kubernetes 1.35

	mutex    sync.Mutex
	err      error                // error of all requests, unless nil
	silent   bool                 // the initial events are streamed, but not their end
	lost     bool                 // watches lose their connection before the response
	version  int                  // of the last change
	oldest   int                  // oldest version to watch from
	objects  map[string]types.UID // by name
	watches  []*watch.RaceFreeFakeWatcher
	selected map[string]bool // by requests
	requests []string        // verbs, with a + if initial events are requested
}

// IsWatchListSemanticsUnSupported is called by client-go.
func (s *apiServer) IsWatchListSemanticsUnSupported() bool { return s.lists }

func (s *apiServer) request(verb string, options metav1.ListOptions) error {
	if s.selected == nil {
		s.selected = map[string]bool{}
	}
	s.selected[options.LabelSelector] = true
	s.requests = append(s.requests, verb)
	return s.err
}

func (s *apiServer) List(_ context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.request("list", options); err != nil {
		return nil, err
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		list.Items = append(list.Items, *s.object(name))
	}
	return list, nil
}

func (s *apiServer) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	streams := ptr.Deref(options.SendInitialEvents, false)
	verb := "watch"
	if streams {
		verb = "watch+"
	}
	if err := s.request(verb, options); err != nil {
		return nil, err
	}
	if streams && s.refuses {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	}
	if s.lost {
		return watch.NewEmptyWatch(), nil // as client-go does
	}
	w := watch.NewRaceFreeFake()
	if from, err := strconv.Atoi(options.ResourceVersion); !streams && (err != nil || from < s.oldest) {
		w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
		return w, nil
	}
	if streams {
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			w.Add(s.object(name))
		}
		if !s.silent {
			w.Action(watch.Bookmark, s.endOfList())
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// endOfList returns the bookmark that ends the initial events.
func (s *apiServer) endOfList() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

func (s *apiServer) object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: s.objects[name], ResourceVersion: strconv.Itoa(s.version),
	}}
}

// send sends an event to all watches.
func (s *apiServer) send(event watch.EventType, object *corev1.ConfigMap) {
	for _, w := range s.watches {
		w.Action(event, object)
	}
}

// create stores an object.
func (s *apiServer) create(name string, uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	if s.objects == nil {
		s.objects = map[string]types.UID{}
	}
	s.objects[name] = uid
	s.send(watch.Added, s.object(name))
}

// answer makes requests fail with err, or succeed if it is nil.
func (s *apiServer) answer(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
}

// loseConnections ends all watches and makes later ones lose their connection.
func (s *apiServer) loseConnections(lost bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lost = lost
	s.closeLocked()
}

// close ends all watches.
func (s *apiServer) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closeLocked()
}

func (s *apiServer) closeLocked() {
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

// replace ends all watches and replaces all objects, as if another API of the same name
// were installed.
func (s *apiServer) replace(objects map[string]types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closeLocked()
	s.version += 10
	s.oldest, s.objects = s.version, objects
}

// restore ends all watches, and sets objects and version back as if etcd were restored.
func (s *apiServer) restore(objects map[string]types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closeLocked()
	s.version, s.objects = 1, objects
}

// requested returns the number of requests by verb since the last call.
func (s *apiServer) requested() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	requested := map[string]int{}
	for _, verb := range s.requests {
		requested[verb]++
	}
	s.requests = nil
	return requested
}

// bubble is the environment of a test in a synctest bubble. There time passes only when every
// goroutine waits, and the test fails if one leaks.
type bubble struct {
	*testing.T
	ctx                           context.Context
	configMapServer, secretServer *apiServer
	factory                       *Factory
	log                           ktesting.Buffer
}

// inBubble runs a test in a bubble, once with servers that stream and once without.
func inBubble(t *testing.T, test func(*bubble)) {
	for name, lists := range map[string]bool{"by list and watch": true, "by stream": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
				b := &bubble{
					T:               t,
					ctx:             klog.NewContext(t.Context(), logger),
					configMapServer: &apiServer{lists: lists, version: 1},
					secretServer:    &apiServer{lists: lists, version: 1},
					factory:         NewFactory(),
					log:             logger.GetSink().(ktesting.Underlier).GetBuffer(),
				}
				defer b.factory.Shutdown()
				test(b)
			})
		})
	}
}

func (b *bubble) configMaps(opts ...Option) cache.TypedSharedIndexInformer[*corev1.ConfigMap] {
	return InformerFor[*corev1.ConfigMap](b.factory, configMaps, b.configMapServer, opts...)
}

func (b *bubble) secrets() cache.TypedSharedIndexInformer[*corev1.ConfigMap] {
	return InformerFor[*corev1.ConfigMap](b.factory, secrets, b.secretServer)
}

// waitForSync waits until all informers have synced. It returns false if the test ends first.
func (b *bubble) waitForSync() bool {
	var checkers []cache.DoneChecker
	for _, i := range b.factory.all() {
		checkers = append(checkers, i.HasSyncedChecker())
	}
	return cache.WaitFor(b.ctx, "", checkers...)
}

// logged returns the messages logged since the last call. Errors start with "!".
func (b *bubble) logged() []string {
	var messages []string
	for _, entry := range b.log.Data() {
		switch {
		case entry.Type == ktesting.LogError:
			messages = append(messages, "!"+entry.Message)
		case strings.HasPrefix(entry.Message, "Warning: event bookmark expired"): // from client-go
		default:
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// held returns the names and UIDs of the objects in the cache.
func held(informer cache.SharedInformer) map[string]types.UID {
	held := map[string]types.UID{}
	for _, obj := range informer.GetStore().List() {
		object := obj.(*corev1.ConfigMap)
		held[object.Name] = object.UID
	}
	return held
}
