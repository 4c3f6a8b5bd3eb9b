// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// retryInterval is how far apart tries are at most.
const retryInterval = 10 * time.Second

// RetryAfter returns after how long to try a write again whose permission is missing:
// 5 to 10 s. A try costs the API server next to nothing. Those of many objects are
// spread, so that the first that is let through opens the way for the others.
func RetryAfter() time.Duration { return retryInterval/2 + rand.N(retryInterval/2) }

// IsMissingPermission tells whether the API server's authorizer has denied a request,
// rather than admission.
func IsMissingPermission(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && reasonOf(status.Status()) != nil
}

// byAuthorizer is what the authorizer says, after which object it is about:
// k8s.io/apiserver/pkg/endpoints/handlers/responsewriters.ForbiddenStatusError. What
// admission says begins otherwise.
var byAuthorizer = regexp.MustCompile(`(?s)^\S+(?: "[^"]*")? is forbidden: (User ".*" cannot (\S+) resource "(\S+)" in API group "(\S*)" (?:in the namespace "(\S+)"|at the cluster scope)(?:: .*)?)$`)

// reason is why the authorizer has denied a request.
type reason struct {
	permission
	message string // without the object's name
}

// reasonOf returns why the authorizer has denied a request, nil if it has not.
func reasonOf(status metav1.Status) *reason {
	if status.Code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden {
		return nil
	}
	m := byAuthorizer.FindStringSubmatch(status.Message)
	if m == nil {
		return nil
	}
	return &reason{permission{m[2], schema.GroupResource{Resource: m[3], Group: m[4]}, m[5]}, m[1]}
}

// statuses decodes what the API server says, in whatever encoding.
var statuses = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// statusIn returns the status in an answer, which can still be read after that; nil if
// there is none.
func statusIn(response *http.Response) (*metav1.Status, error) {
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	object, _, err := statuses.Decode(body, nil, nil)
	status, ok := object.(*metav1.Status)
	if err != nil || !ok {
		return nil, nil // of somebody on the way
	}
	return status, nil
}

// forbidden returns the API server's error for a write that it denies with the message.
func forbidden(t target, message string) *apierrors.StatusError {
	resource := t.resource
	resource.Resource, _, _ = strings.Cut(resource.Resource, "/")
	return apierrors.NewForbidden(resource, t.name, errors.New(message))
}

// answer returns the answer to a request that has the given error.
func answer(request *http.Request, err *apierrors.StatusError) *http.Response {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, _ := json.Marshal(status) // strings and numbers always marshal
	return &http.Response{
		Status:        "403 Forbidden",
		StatusCode:    http.StatusForbidden,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}
