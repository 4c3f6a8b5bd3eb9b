// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

func TestClientFor(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, list(thing("a", "1", goodSpec), thing("b", "2", badSpec)))
			return
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	things, err := ClientFor[*Thing, *ThingList](&rest.Config{Host: server.URL}, scheme, version.WithResource("things"))
	if err != nil {
		t.Fatal(err)
	}

	got, err := things("").List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decodedList(decoded("a", "1"), placeholderFor("b", "2", badMessage)), got); diff != "" {
		t.Errorf("unexpected list (-want +got):\n%s", diff)
	}
	if _, err := things("default").UpdateStatus(t.Context(), decoded("a", "1"),
		metav1.UpdateOptions{FieldManager: "m"}); err != nil {
		t.Error(err)
	}
	want := []string{"GET /apis/example.com/v1/things?labelSelector=a%3Db", "PUT /apis/example.com/v1/namespaces/default/things/a/status?fieldManager=m"}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
}

func TestClientForRefusesSchemes(t *testing.T) {
	for name, test := range map[string]struct {
		add  func(*runtime.Scheme)
		want string
	}{
		"without the object": {func(s *runtime.Scheme) { s.AddKnownTypes(version, &ThingList{}) }, "*tolerant.Thing as a type of example.com/v1: call AddKnownTypes"},
		"without the list":   {func(s *runtime.Scheme) { s.AddKnownTypes(version, &Thing{}) }, "the scheme does not know ThingList of example.com/v1: call AddKnownTypes"},
		"with another list": {func(s *runtime.Scheme) {
			s.AddKnownTypes(version, &Thing{})
			s.AddKnownTypeWithName(version.WithKind("ThingList"), &metav1.List{})
			metav1.AddToGroupVersion(s, version)
		}, "*tolerant.ThingList as a type of example.com/v1: call AddKnownTypes"},
		"without the options": {func(s *runtime.Scheme) { s.AddKnownTypes(version, &Thing{}, &ThingList{}) }, "ListOptions of example.com/v1: call AddKnownTypes of the scheme, and metav1.AddToGroupVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			test.add(s)
			if _, err := ClientFor[*Thing, *ThingList](&rest.Config{}, s, version.WithResource("things")); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("ClientFor: %v, want an error with %q", err, test.want)
			}
		})
	}
}

// protobufThing has the methods of a generated protobuf encoding, as some custom resources have.
type protobufThing struct{ Thing }

func (t *protobufThing) DeepCopyObject() runtime.Object {
	return &protobufThing{*t.Thing.DeepCopyObject().(*Thing)}
}

func (*protobufThing) Unmarshal([]byte) error { return errors.New("protobuf") }

// TestCustomResourceWithProtobufMethods also reads an object that cannot be decoded.
func TestCustomResourceWithProtobufMethods(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(version.WithKind("Thing"), &protobufThing{})
	s.AddKnownTypes(version, &ThingList{})
	metav1.AddToGroupVersion(s, version)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Content-Type") + r.Header.Get("Accept"); strings.Contains(got, "protobuf") {
			t.Errorf("%s in protobuf: %s", r.Method, got)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, thing("b", "2", badSpec))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
	things, err := ClientFor[*protobufThing, *ThingList](config, s, version.WithResource("things"))
	if err != nil {
		t.Fatal(err)
	}
	created, err := things("default").Create(t.Context(), &protobufThing{*decoded("b", "")}, metav1.CreateOptions{})
	if err != nil || DecodeError(created) == nil {
		t.Errorf("created %v, %v, want a placeholder", created, err)
	}
}

func TestIsBuiltIn(t *testing.T) {
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	if !IsBuiltIn[*corev1.Pod](pod) {
		t.Error("a Pod is not built in")
	}
	if IsBuiltIn[*metav1.PartialObjectMetadata](pod) { // has protobuf methods, but not for a whole Pod
		t.Error("another type of Pods is built in")
	}
}
