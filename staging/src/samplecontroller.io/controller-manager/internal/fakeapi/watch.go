// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

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
	query := c.URL.Query()
	match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch"))
	if query.Has("sendInitialEvents") && match != metav1.ResourceVersionMatchNotOlderThan {
		err := field.Forbidden(field.NewPath("resourceVersionMatch"),
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
		return nil, apierrors.NewInvalid(metav1.Kind("ListOptions"), "", field.ErrorList{err})
	}
	there, from, tooOld := s.start(c, selected)
	ctx, end := context.WithCancel(c.Context())
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		ctx, end = context.WithTimeout(c.Context(), time.Duration(seconds)*time.Second)
	}
	reader, writer := io.Pipe()
	go func() {
		defer end()
		to := json.NewEncoder(writer)
		if tooOld != nil { // which a real API server also says in the stream
			writer.CloseWithError(to.Encode(event(watch.Error, typed(tooOld.ErrStatus))))
			return
		}
		writer.CloseWithError(s.stream(ctx, c, selected, there, from, to))
	}()
	return response(c.Request, http.StatusOK, watchBody{reader, end}), nil
}

// start returns where a watch starts: the objects that it sends first, and the version whose changes
// follow. It returns an error if that version is too old.
func (s *Server) start(c call, selected selector) ([]*unstructured.Unstructured, int64, *apierrors.StatusError) {
	query := c.URL.Query()
	from, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if from == 0 || query.Get("sendInitialEvents") == "true" {
		return s.selected(c, s.version, selected), s.version, nil
	}
	if from < s.oldest {
		return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.oldest))
	}
	return nil, from, nil
}

// since returns the changes after a version, the current version, and a channel that is closed at the
// next change.
func (s *Server) since(version int64) ([]change, int64, chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	next := sort.Search(len(s.log), func(i int) bool { return s.log[i].version > version })
	return s.log[next:], s.version, s.changed
}

// event returns a watch event.
func event(kind watch.EventType, o any) map[string]any {
	return map[string]any{"type": kind, "object": o}
}

// stream sends objects, and then the changes after a version until ctx ends. It returns an error only if
// sending fails.
func (s *Server) stream(
	ctx context.Context, c call, selected selector, there []*unstructured.Unstructured, version int64, to *json.Encoder,
) error {
	query := c.URL.Query()
	send := func(kind watch.EventType, o any) error { return to.Encode(event(kind, o)) }
	for _, o := range there {
		if err := send(watch.Added, c.view(o)); err != nil {
			return err
		}
	}
	bookmarks := query.Get("allowWatchBookmarks") == "true"
	if bookmarks && query.Get("sendInitialEvents") == "true" {
		annotations := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		if err := send(watch.Bookmark, c.bookmark(version, annotations)); err != nil {
			return err
		}
	}
	tick := time.NewTimer(untilBookmark(ctx))
	defer tick.Stop()
	for {
		var changes []change
		var changed chan struct{}
		changes, version, changed = s.since(version)
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
			tick.Reset(untilBookmark(ctx))
			if !bookmarks {
				continue
			}
			if err := send(watch.Bookmark, c.bookmark(version, nil)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// bookmarkPeriod is how often a watch sends a bookmark. One more is sent bookmarkMargin before its end.
const (
	bookmarkPeriod = time.Minute
	bookmarkMargin = 2 * time.Second
)

// untilBookmark returns when the next bookmark is due.
func untilBookmark(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline) - bookmarkMargin; left > 0 {
			return min(left, bookmarkPeriod)
		}
	}
	return bookmarkPeriod
}

// event returns the watch event for a change, nil if there is none.
func (c change) event(selected selector) (watch.EventType, *unstructured.Unstructured) {
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
