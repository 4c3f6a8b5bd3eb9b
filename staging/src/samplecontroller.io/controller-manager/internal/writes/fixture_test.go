// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// username is one that the API server must quote.
const username = `system:serviceaccount:"odd" cannot & so on`

var requestInfos = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

var errRefused = errors.New("this process does not lead")

// api is a RoundTripper that stands for the API server. It uses the real authorizer
// responses.
type api struct {
	delay time.Duration

	mutex    sync.Mutex
	denied   func(authorizer.Attributes) bool // nil: none
	error    error                            // of requests that are not denied
	broken   error                            // of the transport, without a response
	plain    string                           // response of a proxy instead of the API server's
	requests []string
}

// set changes the API server.
func (a *api) set(change func(*api)) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	change(a)
}

// deny makes the authorizer deny exactly the requests for which the function returns true.
func (a *api) deny(denied func(authorizer.Attributes) bool) {
	a.set(func(a *api) { a.denied = denied })
}

// taken returns the number of requests since the last call.
func (a *api) taken() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	defer func() { a.requests = nil }()
	return len(a.requests)
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	a.mutex.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	denied, result, broken, plain := a.denied, a.error, a.broken, a.plain
	a.mutex.Unlock()
	if broken != nil {
		return nil, broken
	}
	time.Sleep(a.delay)
	info, err := requestInfos.NewRequestInfo(r)
	if err != nil {
		return nil, err
	}
	attributes := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: username}, ResourceRequest: true,
		Verb: info.Verb, APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	}
	w := httptest.NewRecorder()
	switch {
	case denied != nil && denied(attributes):
		responsewriters.Forbidden(attributes, w, r, "", scheme.Codecs)
	case result != nil:
		responsewriters.RespondWithError(w, r, result, scheme.Codecs)
	case plain != "":
		http.Error(w, plain, http.StatusForbidden)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteString(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
	}
	return w.Result(), nil
}

// client returns a client whose requests pass through the transport.
func client(t testing.TB, transport *Transport, a http.RoundTripper, contentType string) kubernetes.Interface {
	t.Helper()
	config := &rest.Config{Host: "https://api.test", Transport: a, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: contentType}}
	if transport != nil {
		config.Wrap(transport.Wrap)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fixture is a transport between a client and an API server.
type fixture struct {
	*testing.T
	transport *Transport
	api       *api
	client    kubernetes.Interface
}

func newFixture(t *testing.T, metrics *Metrics) *fixture {
	f := &fixture{T: t, transport: New("a-controller", metrics, errRefused), api: &api{}}
	f.client = client(t, f.transport, f.api, runtime.ContentTypeJSON)
	return f
}

func (f *fixture) create(ctx context.Context, ns string) error {
	_, err := f.client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		metav1.CreateOptions{})
	return err
}

func (f *fixture) patch(ctx context.Context, ns, name string, subresources ...string) error {
	_, err := f.client.AppsV1().Deployments(ns).Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{},
		subresources...)
	return err
}

// wantRequests checks the number of requests to the API server since the last call.
func (f *fixture) wantRequests(want int) {
	f.Helper()
	if got := f.api.taken(); got != want {
		f.Errorf("%d requests came to the API server, want %d", got, want)
	}
}

// wantDenied compares the denials, one line each.
func (f *fixture) wantDenied(want ...string) {
	f.Helper()
	var got []string
	for _, denial := range f.transport.Denied() {
		got = append(got, denial.String())
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.Errorf("denied are %q, want %q", got, want)
	}
}

func everything(authorizer.Attributes) bool { return true }

func nothing(authorizer.Attributes) bool { return false }
