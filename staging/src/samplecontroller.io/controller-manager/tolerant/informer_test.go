// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/fakeapi"
)

// apiServer notes the requests for lists and watches, and may refuse to stream initial events.
type apiServer struct {
	*fakeapi.Server
	refuses bool

	mutex    sync.Mutex
	requests []string
}

func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	request := "list"
	switch {
	case r.Method != http.MethodGet:
		return s.Server.RoundTrip(r)
	case r.Header.Get("Accept") != runtime.ContentTypeJSON:
		return fakeapi.Answer(r, http.StatusNotAcceptable, metav1.Status{Status: metav1.StatusFailure})
	case query.Get("sendInitialEvents") == "true":
		request = "stream"
	case query.Get("watch") == "true":
		request = "watch"
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request)
	if request == "stream" && s.refuses {
		return fakeapi.Answer(r, http.StatusUnprocessableEntity, metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
	}
	return s.Server.RoundTrip(r)
}

// write creates, replaces or deletes a Thing, which need not be one that can be decoded.
func (s *apiServer) write(t *testing.T, method, name, spec string) {
	t.Helper()
	path := "http://api.test/apis/example.com/v1/namespaces/default/things"
	if method != http.MethodPost {
		path += "/" + name
	}
	object := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q},"spec":%s}`, name, spec)
	if method == http.MethodPut {
		method, object = http.MethodPatch, fmt.Sprintf(`[{"op":"replace","path":"/spec","value":%s}]`, spec)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", string(types.JSONPatchType)) // which only a patch needs
	response, err := s.RoundTrip(r)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %v, %v", method, path, response, err)
	}
}

// informer returns a running informer of the server's Things.
func (s *apiServer) informer(t *testing.T) cache.TypedSharedIndexInformer[*Thing] {
	t.Helper()
	config := &rest.Config{Host: "http://api.test", Transport: s, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
	}}
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
	})
	return informer
}

// contents returns the names of the cached objects, with the errors of placeholders.
func contents(informer cache.TypedSharedIndexInformer[*Thing]) []string {
	var names []string
	for _, obj := range informer.GetStore().List() {
		thing := obj.(*Thing)
		name := thing.Name + " " + thing.Spec.Name
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
		refuses  bool
		requests []string
	}{
		"by list and watch":           {true, []string{"stream", "list", "watch"}},
		"by stream of initial events": {false, []string{"stream"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &apiServer{Server: fakeapi.New(scheme), refuses: test.refuses}
				for name, spec := range map[string]string{"a": goodSpec, "b": badSpec, "c": goodSpec} {
					server.write(t, http.MethodPost, name, spec)
				}
				informer := server.informer(t)
				expect := func(want ...string) {
					t.Helper()
					synctest.Wait()
					if diff := cmp.Diff(want, contents(informer)); diff != "" {
						t.Errorf("unexpected objects in the cache (-want +got):\n%s", diff)
					}
				}
				expect("a good", "b "+badMessage, "c good")

				server.write(t, http.MethodPost, "d", badSpec)
				expect("a good", "b "+badMessage, "c good", "d "+badMessage)
				server.write(t, http.MethodPut, "c", badSpec) // became bad
				expect("a good", "b "+badMessage, "c "+badMessage, "d "+badMessage)
				server.write(t, http.MethodPut, "b", goodSpec) // repaired
				expect("a good", "b good", "c "+badMessage, "d "+badMessage)
				server.write(t, http.MethodDelete, "d", badSpec)
				expect("a good", "b good", "c "+badMessage)
				time.Sleep(2 * time.Minute) // with bookmarks
				server.write(t, http.MethodDelete, "c", badSpec)
				expect("a good", "b good")

				server.mutex.Lock()
				defer server.mutex.Unlock()
				if diff := cmp.Diff(test.requests, server.requests); diff != "" {
					t.Errorf("unexpected requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}
