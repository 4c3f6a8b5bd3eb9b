// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// apiServer serves Things to one informer, by a list or a stream of initial events, and then
// sends the given events.
type apiServer struct {
	initial   []string
	watchList bool
	events    chan string

	mutex    sync.Mutex
	requests []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	watch, stream := query.Get("watch") == "true", query.Get("sendInitialEvents") == "true"
	switch {
	case stream:
		s.note("stream")
	case watch:
		s.note("watch")
	default:
		s.note("list")
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/apis/example.com/v1/things" || r.Header.Get("Accept") != "application/json" {
		http.Error(w, "not asked for Things in JSON", http.StatusNotAcceptable)
		return
	}
	if !watch {
		fmt.Fprint(w, list(s.initial...))
		return
	}
	if stream && !s.watchList {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","reason":"Invalid","code":422}`)
		return
	}
	send := func(event string) {
		fmt.Fprintln(w, event)
		w.(http.Flusher).Flush()
	}
	if stream {
		for _, object := range s.initial {
			send(event("ADDED", object))
		}
		send(event("BOOKMARK", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}`))
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-s.events:
			send(event)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) note(request string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request)
}

// event returns the JSON of a watch event.
func event(eventType, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, eventType, object)
}

// informer returns a running informer of the server's Things.
func (s *apiServer) informer(t *testing.T) cache.TypedSharedIndexInformer[*Thing] {
	t.Helper()
	server := httptest.NewServer(s)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}}
	client, err := RESTClientFor(config, version, scheme)
	if err != nil {
		t.Fatal(err)
	}
	things := gentype.NewClientWithList[*Thing, *ThingList]("things", client, runtime.NewParameterCodec(scheme), "",
		func() *Thing { return &Thing{} }, func() *ThingList { return &ThingList{} })
	informer := cache.NewTypedSharedIndexInformer[*Thing](cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return things.List(ctx, options)
		},
		WatchFuncWithContext: things.Watch,
	}, &Thing{}, 0, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		server.Close()
	})
	return informer
}

// contents returns the names of the cached objects, with the errors of placeholders.
func contents(informer cache.TypedSharedIndexInformer[*Thing]) []string {
	var names []string
	for _, obj := range informer.GetStore().List() {
		thing := obj.(*Thing)
		name := thing.Name + " " + thing.ResourceVersion + " " + thing.Spec.Name
		if err := DecodeError(thing); err != nil {
			name += err.Error()
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestInformerServesOtherObjects(t *testing.T) {
	for name, test := range map[string]struct {
		watchList bool
		requests  []string
	}{
		"by list and watch":           {false, []string{"stream", "list", "watch"}},
		"by stream of initial events": {true, []string{"stream"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{
				watchList: test.watchList,
				initial:   []string{thing("a", "1", goodSpec), thing("b", "2", badSpec), thing("c", "3", goodSpec)},
				events:    make(chan string),
			}
			informer := server.informer(t)
			expect := func(want ...string) {
				t.Helper()
				var got []string
				for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					if got = contents(informer); slices.Equal(got, want) {
						return
					}
				}
				t.Fatalf("unexpected objects in the cache (-want +got):\n%s", cmp.Diff(want, got))
			}
			expect("a 1 good", "b 2 "+badMessage, "c 3 good")

			server.events <- event("ADDED", thing("d", "101", badSpec))
			expect("a 1 good", "b 2 "+badMessage, "c 3 good", "d 101 "+badMessage)
			server.events <- event("MODIFIED", thing("c", "102", badSpec)) // became bad
			expect("a 1 good", "b 2 "+badMessage, "c 102 "+badMessage, "d 101 "+badMessage)
			server.events <- event("MODIFIED", thing("b", "103", goodSpec)) // repaired
			expect("a 1 good", "b 103 good", "c 102 "+badMessage, "d 101 "+badMessage)
			server.events <- event("DELETED", thing("d", "104", badSpec))
			expect("a 1 good", "b 103 good", "c 102 "+badMessage)
			server.events <- event("BOOKMARK", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"resourceVersion":"105"}}`)
			server.events <- event("DELETED", thing("c", "106", goodSpec))
			expect("a 1 good", "b 103 good")
			if got := informer.LastSyncResourceVersion(); got != "106" {
				t.Errorf("last resourceVersion = %s, want 106", got)
			}

			server.mutex.Lock()
			defer server.mutex.Unlock()
			if diff := cmp.Diff(test.requests, server.requests); diff != "" {
				t.Errorf("unexpected requests (-want +got):\n%s", diff)
			}
		})
	}
}
