// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// sent records a request and answers 200.
type sent struct {
	request *http.Request
	body    []byte
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.request, s.body = r, nil
	if r.Body != nil {
		s.body, _ = io.ReadAll(r.Body)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

func request(t *testing.T, method, path string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api.test"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEachWriteIsDryRun(t *testing.T) {
	for _, write := range []string{
		"POST /api/v1/namespaces/ns/configmaps", "PUT /apis/apps/v1/namespaces/ns/deployments/a", "PATCH /apis/example.com/v1/foos/a/status?fieldManager=a",
		"DELETE /api/v1/namespaces/ns/pods", "POST /prefix/apis/apps/v1/namespaces/ns/deployments/a/scale", "POST /api/v1/namespaces/ns/pods/a/eviction",
	} {
		next := &sent{}
		method, path, _ := strings.Cut(write, " ")
		if _, err := OnlyDryRuns(next).RoundTrip(request(t, method, path, nil)); err != nil {
			t.Errorf("%s: %v", write, err)
		} else if got := next.request.URL.Query(); got.Get("dryRun") != "All" || strings.Contains(path, "fieldManager") && got.Get("fieldManager") != "a" {
			t.Errorf("%s was sent with the query %v", write, got)
		}
	}
	next := &sent{}
	if _, err := OnlyDryRuns(next).RoundTrip(request(t, "GET", "/api/v1/pods?watch=1", nil)); err != nil || next.request.URL.RawQuery != "watch=1" {
		t.Errorf("a read was sent as %v: %v", next.request, err)
	}
}

// TestDeletionIsDryRun sends options, for which the API server ignores the query.
func TestDeletionIsDryRun(t *testing.T) {
	version := "1"
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
	encoded := map[string][]byte{}
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		var body bytes.Buffer
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		if err := encoder.Encode(options, &body); err != nil {
			t.Fatal(err)
		}
		encoded[info.MediaType] = body.Bytes()
	}
	for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		next := &sent{}
		r := request(t, "DELETE", "/api/v1/namespaces/ns/pods/a", encoded[mediaType])
		r.Header.Set("Content-Type", mediaType)
		if _, err := OnlyDryRuns(next).RoundTrip(r); err != nil {
			t.Errorf("%s: %v", mediaType, err)
			continue
		}
		var got metav1.DeleteOptions
		if err := json.Unmarshal(next.body, &got); err != nil || len(got.DryRun) != 1 || got.DryRun[0] != "All" ||
			got.Preconditions == nil || *got.Preconditions.ResourceVersion != "1" || got.Kind != "DeleteOptions" ||
			next.request.Header.Get("Content-Type") != "application/json" || next.request.ContentLength != int64(len(next.body)) {
			t.Errorf("%s was sent as %s: %v", mediaType, next.body, err)
		}
	}
}

func TestOtherWritesAreRefused(t *testing.T) {
	for _, write := range []string{
		"POST /api/v1/namespaces/ns/pods/a/exec", "GET /api/v1/namespaces/ns/pods/a/exec", "POST /api/v1/namespaces/ns/services/a/proxy/x",
		"PUT /debug/flags/v", "DELETE /api/v1/namespaces/ns/pods/a",
	} {
		next := &sent{}
		method, path, _ := strings.Cut(write, " ")
		if _, err := OnlyDryRuns(next).RoundTrip(request(t, method, path, []byte("not options"))); err == nil || next.request != nil {
			t.Errorf("%s was sent: %v", write, err)
		}
	}
}
