// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testing runs the whole daemon in-process, for integration tests.
package testing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// Server is a daemon that runs in-process. Only one may run at a time, because it registers
// process-wide metrics and handlers.
type Server struct {
	// URL of its HTTPS port.
	URL string

	client *http.Client
	log    ktesting.Buffer
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start runs the daemon with the given flags until the test ends, or until [Server.Stop].
// It logs to the test. It returns once the port is open, before the daemon is ready.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	return StartWith(t, app.Program(), flags...)
}

// StartWith is like [Start] for another program.
func StartWith(t testing.TB, program manager.Program, flags ...string) *Server {
	t.Helper()
	o := program.Options()
	fs := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(flags); err != nil {
		t.Fatalf("parsing flags %q: %v", flags, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	o.Server.SecureServing.Listener = listener
	o.Server.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	config, err := o.Config(t.Context())
	if err != nil {
		t.Fatalf("configuring the daemon: %v", err)
	}

	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	s := &Server{
		URL:    "https://" + listener.Addr().String(),
		client: clientFor(t, config.Server.SecureServing.Cert.CurrentCertKeyContent),
		log:    logger.GetSink().(ktesting.Underlier).GetBuffer(),
		cancel: cancel,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.err = manager.Run(ctx, program, config)
	}()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("the daemon ended with: %v", err)
		}
	})
	return s
}

// clientFor returns a client that trusts the server's self-signed certificate.
func clientFor(t testing.TB, content func() (cert, key []byte)) *http.Client {
	t.Helper()
	bundle, _ := content()
	pool := x509.NewCertPool()
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatalf("parsing the server's certificate: %v", err)
		}
		pool.AddCert(cert)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Log returns the log so far.
func (s *Server) Log() string { return s.log.String() }

// Stop stops the daemon as a signal does, waits for it and returns its error. Further calls
// return the same error.
func (s *Server) Stop() error {
	s.cancel()
	return s.Wait()
}

// Wait waits until the daemon has ended and returns its error.
func (s *Server) Wait() error {
	<-s.done
	s.client.CloseIdleConnections()
	return s.err
}

// Get sends a GET request, with a bearer token unless it is empty, and returns the status
// code and the body.
func (s *Server) Get(ctx context.Context, path, token string) (code int, body string, err error) {
	return s.do(ctx, http.MethodGet, path, token, "")
}

// Put is like [Server.Get] for a PUT request with content.
func (s *Server) Put(ctx context.Context, path, token, content string) (code int, body string, err error) {
	return s.do(ctx, http.MethodPut, path, token, content)
}

func (s *Server) do(ctx context.Context, method, path, token, content string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(content))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", path, err)
	}
	return response.StatusCode, string(answer), nil
}
