// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/debug"
)

// Replica is a connection to a replica. It lasts until Close, or until its token expires after 10 minutes.
type Replica struct {
	// Name is the Pod as namespace/name, or the address of the replica.
	Name string

	server, token string
	client        *http.Client
	forwarding    *forwarding // nil with an address
	account       string
}

// Dial connects to the selected replica. progress is told its Pod as soon as the rights to ask it are known.
func (c *Cluster) Dial(ctx context.Context, progress func(pod string)) (*Replica, error) {
	pod := c.options.Pod
	if pod == "" && c.options.Server == "" {
		var err error
		if pod, err = c.leaderPod(ctx); err != nil {
			return nil, err
		}
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	server := strings.TrimSuffix(c.options.Server, "/")
	r := &Replica{Name: c.options.Server, server: server, token: token, account: c.options.account}
	verify := rest.TLSClientConfig{Insecure: c.options.insecure, CAFile: c.options.certificateAuthority}
	if pod != "" {
		r.Name = c.options.DaemonNamespace + "/" + pod
		progress(r.Name)
		if r.forwarding, err = c.forward(ctx, pod); err != nil {
			return nil, fmt.Errorf("forwarding a port to Pod %s: %w", r.Name, c.withAdvice(err))
		}
		// The API server and the kubelet connect to the Pod, so verifying its certificate adds nothing.
		r.server, verify = "https://"+r.forwarding.address, rest.TLSClientConfig{Insecure: true}
	}
	// The replica sees the token and no other credential.
	if r.client, err = rest.HTTPClientFor(&rest.Config{TLSClientConfig: verify}); err != nil {
		r.Close()
		return nil, fmt.Errorf("creating a client for %s: %w", r.Name, err)
	}
	// Do not send the token to a server that this one redirects to.
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r, nil
}

// Close closes the connection.
func (r *Replica) Close() {
	if r.client != nil {
		r.client.CloseIdleConnections()
	}
	if r.forwarding != nil {
		r.forwarding.stop()
	}
}

// Report returns what the replica is doing, with at most limit entries in each list. An empty controller means all.
func (r *Replica) Report(ctx context.Context, controller string, limit int) (debug.Report, error) {
	var report debug.Report
	path := debug.Path
	if controller != "" {
		path += "/" + url.PathEscape(controller)
	}
	return report, r.read(ctx, fmt.Sprintf("%s?limit=%d", path, limit), &report)
}

// Explain returns what a controller of the replica does about an object.
func (r *Replica) Explain(ctx context.Context, controller, namespace, name string) (debug.Explanation, error) {
	var explanation debug.Explanation
	path := debug.Path + "/" + url.PathEscape(controller) + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	return explanation, r.read(ctx, path, &explanation)
}

// SetVerbosity sets the log verbosity of the replica and returns its answer.
func (r *Replica) SetVerbosity(ctx context.Context, level string) (string, error) {
	content, err := r.do(ctx, http.MethodPut, "/debug/flags/v", level)
	return strings.TrimSpace(string(content)), err
}

// AllowDeletions lifts the limit of deletions of a controller for some minutes, and returns the answer of the replica.
func (r *Replica) AllowDeletions(ctx context.Context, controller string) (string, error) {
	content, err := r.do(ctx, http.MethodPut, "/debug/deletions/"+url.PathEscape(controller), "")
	return strings.TrimSpace(string(content)), err
}

// read decodes a page into value.
func (r *Replica) read(ctx context.Context, path string, value any) error {
	content, err := r.do(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("decoding the response, which is not from a %s: %w", Daemon, err)
	}
	return nil
}

// do sends a request and returns the content of the response.
func (r *Replica) do(ctx context.Context, method, path, body string) ([]byte, error) {
	code, content, err := r.send(ctx, method, path, body, r.token)
	switch {
	case err != nil:
		return nil, err
	case code == http.StatusOK:
		return content, nil
	case code == http.StatusUnauthorized:
		return nil, r.unauthorized(ctx)
	case code == http.StatusForbidden:
		return nil, fmt.Errorf("%s answers 403 Forbidden: ServiceAccount %s may not %s %s; apply manifests/rbac of this version", r.Name, r.account, strings.ToLower(method), path)
	default:
		return nil, fmt.Errorf("%s answers %d %s: %.500s", r.Name, code, http.StatusText(code), strings.Join(strings.Fields(string(content)), " "))
	}
}

// unauthorized returns why a replica does not accept a token that the API server has just issued. To look at a token
// the replica needs credentials of its own.
func (r *Replica) unauthorized(ctx context.Context) error {
	_, probe, err := r.send(ctx, http.MethodGet, "/readyz", "", "")
	if err == nil && strings.Contains(string(probe), "[-]lease ") {
		return fmt.Errorf("%s answers 401 Unauthorized, and its check of the Lease fails: the API server does not accept the credentials of the daemon. Yours are fine. Its log says which are rejected", r.Name)
	}
	return fmt.Errorf("%s answers 401 Unauthorized, though the API server has just issued the token: it belongs to another cluster, which --context selects, or the API server does not accept the credentials of the daemon, which its log says", r.Name)
}

// send sends a request, with a token if it is not empty.
func (r *Replica) send(ctx context.Context, method, path, body, token string) (code int, content []byte, err error) {
	defer func() {
		if r.forwarding != nil {
			err = r.forwarding.failure.explain(err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, method, r.server+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("invalid --server: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return 0, nil, fmt.Errorf("%w; use --certificate-authority=<file>, or --insecure-skip-tls-verify if you trust the network", err)
	}
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if content, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, fmt.Errorf("reading the answer of %s: %w", r.Name, err)
	}
	return response.StatusCode, content, nil
}
