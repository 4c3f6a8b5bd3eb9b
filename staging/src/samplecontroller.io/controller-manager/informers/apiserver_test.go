// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// apiServer serves the objects of one resource to one informer like an API server: by lists,
// streams of initial events, and watches from a version. All objects are ConfigMaps, even
// those of other resources.
type apiServer struct {
	lists    bool   // the client knows that streaming is not supported
	refuses  bool   // streaming is rejected, as by default before Kubernetes 1.35
	selector string // of all other requests

	mutex    sync.Mutex
	err      error                // error of all requests, unless nil
	silent   bool                 // the initial events are streamed, but not their end
	lost     bool                 // watches lose their connection before the response
	cuts     bool                 // watches end at once
	hangs    bool                 // requests get no response
	noStream bool                 // streams end before the end of the initial events
	version  int                  // of the last change
	oldest   int                  // oldest version to watch from
	objects  map[string]types.UID // by name
	data     map[string]string    // of the object with the name odd
	watches  []fakeWatch
	selected map[string]bool // by requests
	requests []string        // verbs, with a + if initial events are requested
}

// fakeWatch sends events after a version, like the watch of an API server. It does so even if
// the API server has not reached that version.
type fakeWatch struct {
	*watch.RaceFreeFakeWatcher
	from int
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

func (s *apiServer) List(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	verb := "list"
	if options.Limit == 1 {
		verb, options.LabelSelector = "version", s.selector // of a list that looks only for the version
	}
	if err := s.request(verb, options); err != nil {
		return nil, err
	}
	if err := s.hang(ctx); err != nil {
		return nil, err
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		list.Items = append(list.Items, *s.object(name))
	}
	return list, nil
}

// hang waits for the end of ctx if requests hang.
func (s *apiServer) hang(ctx context.Context) error {
	if !s.hangs {
		return nil
	}
	s.mutex.Unlock()
	defer s.mutex.Lock()
	<-ctx.Done()
	return &url.Error{Op: "Get", URL: unreachable.URL, Err: ctx.Err()}
}

func (s *apiServer) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
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
	if err := s.hang(ctx); err != nil {
		return nil, err
	}
	if streams && s.refuses {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	}
	if s.lost {
		return watch.NewEmptyWatch(), nil // as client-go does
	}
	w := watch.NewRaceFreeFake()
	from, err := strconv.Atoi(options.ResourceVersion)
	switch {
	case streams && err == nil && from > s.version:
		return nil, tooLarge
	case streams:
		from = s.version
	case err != nil || from < s.oldest:
		w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
		return w, nil
	}
	if s.cuts && !streams {
		w.Stop()
		return w, nil
	}
	if streams {
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			w.Add(s.object(name))
		}
		if s.noStream {
			w.Stop()
			return w, nil
		}
		if !s.silent {
			w.Action(watch.Bookmark, s.endOfList())
		}
		if s.cuts {
			w.Stop()
			return w, nil
		}
	}
	s.watches = append(s.watches, fakeWatch{w, from})
	return w, nil
}

// endOfList returns the bookmark that ends the initial events.
func (s *apiServer) endOfList() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

func (s *apiServer) object(name string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: s.objects[name], ResourceVersion: strconv.Itoa(s.version),
	}}
	if name == "odd" {
		object.Data = s.data
	}
	return object
}

// send sends an event to all watches.
func (s *apiServer) send(event watch.EventType, object *corev1.ConfigMap) {
	for _, w := range s.watches {
		if s.version > w.from || event == watch.Bookmark && s.version == w.from {
			w.Action(event, object)
		}
	}
}

// set changes how the server behaves.
func (s *apiServer) set(change func(*apiServer)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s)
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
	s.version, s.oldest, s.objects = 1, 1, objects
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
