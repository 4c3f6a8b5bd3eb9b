// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// get returns the page at path of the replica at server. The replica sees the token and no
// other credential.
func get(ctx context.Context, server, token string, tlsConfig rest.TLSClientConfig, path string) ([]byte, error) {
	client, err := rest.HTTPClientFor(&rest.Config{BearerToken: token, TLSClientConfig: tlsConfig})
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", server, err)
	}
	defer client.CloseIdleConnections()
	// Do not send the token to a server that this one redirects to.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return nil, fmt.Errorf("invalid --server: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return nil, fmt.Errorf("%w; use --certificate-authority=<file>, or --insecure-skip-tls-verify if you trust the network", err)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", server, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return content, nil
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%s answers %s: it is of another cluster, which --context selects, or the API server does not accept its own credentials, which its log says", server, response.Status)
	case http.StatusForbidden:
		return nil, fmt.Errorf("%s answers %s: the ServiceAccount is not bound to ClusterRole %s; apply manifests/rbac of this version", server, response.Status, reader)
	default:
		return nil, fmt.Errorf("%s answers %s: %.500s", server, response.Status, strings.Join(strings.Fields(string(content)), " "))
	}
}
