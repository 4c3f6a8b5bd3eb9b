// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"samplecontroller.io/controller-manager/internal/requests"
	"samplecontroller.io/controller-manager/internal/writes"
)

// OnlyDryRuns returns a transport that makes each write a dry run. It refuses requests that cannot be one, such
// as the execution of a command in a Pod. It must be the innermost wrapper of the configuration of all clients, so that
// no write passes without it.
func OnlyDryRuns(next http.RoundTripper) http.RoundTripper { return &onlyDryRuns{next} }

type onlyDryRuns struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the underlying transport.
func (t *onlyDryRuns) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *onlyDryRuns) RoundTrip(request *http.Request) (*http.Response, error) {
	if !requests.IsWrite(request) {
		return t.next.RoundTrip(request)
	}
	dry, err := dryRunOf(request)
	if err != nil {
		if request.Body != nil {
			request.Body.Close() // required of every RoundTripper
		}
		return nil, fmt.Errorf("refused %s %s: this process makes only dry runs, and %w", request.Method, request.URL.Path, err)
	}
	return t.next.RoundTrip(dry)
}

// streamed are the subresources that are connected to a Pod, a Service or a Node.
var streamed = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// dryRunOf returns the request as a dry run.
func dryRunOf(request *http.Request) (*http.Request, error) {
	target, ok := writes.TargetOf(request)
	if !ok || request.Method == http.MethodGet {
		return nil, errors.New("this request cannot be one")
	}
	if streamed[target.Subresource()] {
		return nil, fmt.Errorf("%s cannot be one", target.Resource)
	}
	dry := request.Clone(request.Context())
	query := dry.URL.Query()
	query.Set("dryRun", metav1.DryRunAll)
	dry.URL.RawQuery = query.Encode()
	if request.Method == http.MethodDelete && request.Body != nil {
		return dry, withDryRunInBody(dry)
	}
	return dry, nil
}

// withDryRunInBody sets the dry run in the options of a deletion. If there is a body, the API server ignores the query.
func withDryRunInBody(request *http.Request) error {
	body, err := io.ReadAll(request.Body)
	if err = errors.Join(err, request.Body.Close()); err != nil {
		return fmt.Errorf("its options cannot be read: %w", err)
	}
	var options metav1.DeleteOptions
	if protobuf, ok := bytes.CutPrefix(body, []byte("k8s\x00")); ok {
		var unknown runtime.Unknown
		if err = unknown.Unmarshal(protobuf); err == nil {
			err = options.Unmarshal(unknown.Raw)
		}
		options.APIVersion, options.Kind = unknown.APIVersion, unknown.Kind
	} else if len(body) > 0 {
		err = json.Unmarshal(body, &options)
	}
	if err != nil {
		return fmt.Errorf("its options cannot be decoded: %w", err)
	}
	options.DryRun = []string{metav1.DryRunAll}
	if options.Kind == "" {
		options.APIVersion, options.Kind = "v1", "DeleteOptions"
	}
	if body, err = json.Marshal(options); err != nil {
		return fmt.Errorf("its options cannot be encoded: %w", err)
	}
	request.Header.Set("Content-Type", runtime.ContentTypeJSON)
	request.ContentLength = int64(len(body))
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}
