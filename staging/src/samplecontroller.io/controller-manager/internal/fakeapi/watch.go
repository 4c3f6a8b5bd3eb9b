// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// bookmarkPeriod is how often a watch sends a bookmark.
const bookmarkPeriod = time.Minute

// selection returns a function that reports whether an object is selected by the list or
// watch.
func (c call) selection() (func(*unstructured.Unstructured) bool, error) {
	query := c.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(o *unstructured.Unstructured) bool {
		return o != nil && (c.Namespace == "" || o.GetNamespace() == c.Namespace) && byLabel.Matches(labels.Set(o.GetLabels())) &&
			byField.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
	}, nil
}

func (s *Server) list(c call) (any, error) {
	selected, err := c.selection()
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{}}
	kind := c.responseKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	list.SetResourceVersion(strconv.FormatInt(s.version, 10))
	for _, o := range s.objects[c.resource] {
		if selected(o) {
			list.Items = append(list.Items, *c.view(o))
		}
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list, nil
}

// watchBody is the response body of a watch. Closing it ends the watch.
type watchBody struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b watchBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (s *Server) watch(c call) (any, error) {
	selected, err := c.selection()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(c.Context())
	if seconds, err := strconv.Atoi(c.URL.Query().Get("timeoutSeconds")); err == nil {
		ctx, end = context.WithTimeout(c.Context(), time.Duration(seconds)*time.Second)
	}
	reader, writer := io.Pipe()
	go func() {
		defer end()
		writer.CloseWithError(s.stream(ctx, c, selected, json.NewEncoder(writer)))
	}()
	return response(c.Request, http.StatusOK, watchBody{reader, end}), nil
}

// stream sends changes until ctx ends. It returns an error only if sending fails.
func (s *Server) stream(ctx context.Context, c call, selected func(*unstructured.Unstructured) bool, to *json.Encoder) error {
	query := c.URL.Query()
	send := func(kind watch.EventType, o any) error { return to.Encode(map[string]any{"type": kind, "object": o}) }
	from, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	initial := query.Get("sendInitialEvents") == "true"

	s.mutex.Lock()
	next := sort.Search(len(s.log), func(i int) bool { return s.log[i].version > from })
	var there []unstructured.Unstructured
	if from == 0 || initial {
		list, _ := s.list(c) // its selectors are valid
		there, next, from = list.(*unstructured.UnstructuredList).Items, len(s.log), s.version
	}
	s.mutex.Unlock()
	for _, o := range there {
		if err := send(watch.Added, &o); err != nil {
			return err
		}
	}
	if initial {
		if err := send(watch.Bookmark, c.bookmark(from, map[string]string{metav1.InitialEventsAnnotationKey: "true"})); err != nil {
			return err
		}
	}
	tick := time.NewTicker(bookmarkPeriod)
	defer tick.Stop()
	for {
		s.mutex.Lock()
		changes, changed, version := s.log[next:], s.changed, s.version
		next = len(s.log)
		s.mutex.Unlock()
		for _, change := range changes {
			if kind, o := change.event(selected); change.resource == c.resource && o != nil {
				if err := send(kind, c.view(o)); err != nil {
					return err
				}
			}
		}
		select {
		case <-changed:
		case <-tick.C:
			if err := send(watch.Bookmark, c.bookmark(version, nil)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// event returns the watch event for a change, nil if there is none.
func (c change) event(selected func(*unstructured.Unstructured) bool) (watch.EventType, *unstructured.Unstructured) {
	was, is := selected(c.old), selected(c.new)
	switch {
	case was && is:
		return watch.Modified, c.new
	case is:
		return watch.Added, c.new
	case was:
		gone := c.old.DeepCopy()
		gone.SetResourceVersion(strconv.FormatInt(c.version, 10))
		return watch.Deleted, gone
	}
	return "", nil
}

func (c call) bookmark(version int64, annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(c.responseKind())
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	o.SetAnnotations(annotations)
	return o
}
