// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
)

// Rejected says that an API server rejects credentials. owner says whose they are.
func Rejected(owner string) string {
	return fmt.Sprintf("the API server does not accept the credentials of %s; is the token or certificate expired, or of another cluster?", owner)
}

// ownerKey is the context key of the owner of a request's credentials, if it is not that of the
// client.
type ownerKey struct{}

// ExplainUnauthorized makes clients of config return an error that says whose credentials were
// rejected, instead of "Unauthorized". The kubeconfig is the one that config comes from; empty
// for the cluster that the process runs in.
func ExplainUnauthorized(config *restclient.Config, kubeconfig string) {
	owner := "this process, from " + cmp.Or(kubeconfig, config.BearerTokenFile, "its configuration")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return explainer{next, owner} })
}

type explainer struct {
	http.RoundTripper
	owner string
}

// RoundTrip implements http.RoundTripper.
func (e explainer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	owner, ok := request.Context().Value(ownerKey{}).(string)
	if !ok {
		owner = e.owner
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized,
		Message: Rejected(owner),
	})
	if err != nil {
		return response, nil // cannot happen, and the answer is an error anyway
	}
	response.Body.Close()
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	response.Header.Del("Content-Length")
	return response, nil
}

// WrappedRoundTripper makes the transport transparent to client-go.
func (e explainer) WrappedRoundTripper() http.RoundTripper { return e.RoundTripper }

// withOwner returns a context of requests with the credentials of this owner.
func withOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}
