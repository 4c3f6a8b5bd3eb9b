// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// signed is the certificate of a server, and that of its authority.
type signed struct {
	certificate *tls.Certificate
	authority   []byte
}

func newSigned(t *testing.T) signed {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed{&pair, certificate}
}

// credentials are those of a client, in files, and the server that it has them for.
type credentials struct {
	t          *testing.T
	dir        string
	served     atomic.Pointer[tls.Certificate]
	token      atomic.Value // the one that is accepted
	server     *httptest.Server
	restConfig *restclient.Config
}

func newCredentials(t *testing.T) *credentials {
	t.Helper()
	c := &credentials{t: t, dir: t.TempDir()}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+c.token.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	c.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*c.served.Load()}}, nil
	}}
	first := newSigned(t)
	c.served.Store(first.certificate)
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	c.token.Store("old")
	c.write("token", "old")
	c.write("ca.crt", string(first.authority))
	c.restConfig = &restclient.Config{
		Host:            c.server.URL,
		BearerTokenFile: filepath.Join(c.dir, "token"),
		TLSClientConfig: restclient.TLSClientConfig{CAFile: filepath.Join(c.dir, "ca.crt")},
	}
	if err := FollowCredentials(c.restConfig); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *credentials) write(file, content string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, file), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// serve has the server show a certificate on new connections, and ends the others.
func (c *credentials) serve(s signed) {
	c.served.Store(s.certificate)
	c.server.CloseClientConnections()
}

// client returns a client with the credentials.
func (c *credentials) client() *http.Client {
	c.t.Helper()
	client, err := restclient.HTTPClientFor(c.restConfig)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

// want sends a request and compares what comes of it: a status, or an error with a text.
func (c *credentials) want(client *http.Client, code int, text string) {
	c.t.Helper()
	response, err := client.Get(c.server.URL)
	switch {
	case text != "":
		if err == nil || !strings.Contains(err.Error(), text) {
			c.t.Errorf("error %v, want one with %q", err, text)
		}
	case err != nil:
		c.t.Error(err)
	case response.StatusCode != code:
		c.t.Errorf("status %d, want %d", response.StatusCode, code)
	}
	if err == nil {
		response.Body.Close()
	}
}

func TestANewTokenIsUsedOnceTheOldOneIsRefused(t *testing.T) {
	c := newCredentials(t)
	a, b := c.client(), c.client()
	c.want(a, http.StatusOK, "")
	c.want(b, http.StatusOK, "")

	c.token.Store("new")
	c.want(a, http.StatusUnauthorized, "")
	c.want(a, http.StatusUnauthorized, "") // nobody has replaced it
	c.write("token", "new")
	c.want(a, http.StatusUnauthorized, "") // the file is read for the request after one that is refused
	c.want(a, http.StatusOK, "")
	c.want(b, http.StatusOK, "") // the clients have it in common
}

func TestNewAuthoritiesAreTrustedOnceTheOldOnesDoNotSuffice(t *testing.T) {
	c := newCredentials(t)
	a, b := c.client(), c.client()
	c.want(a, http.StatusOK, "")
	c.want(b, http.StatusOK, "")

	const untrusted = "certificate signed by unknown authority"
	for range 2 { // and so each time
		next := newSigned(t)
		c.serve(next)
		c.want(a, 0, untrusted)
		c.want(a, 0, untrusted) // nobody has replaced them
		c.write("ca.crt", "")
		c.want(a, 0, untrusted)
		c.write("ca.crt", "nonsense")
		c.want(a, 0, "unable to load root certificates")
		c.write("ca.crt", string(next.authority))
		c.want(a, 0, untrusted) // the file is read for the request after one that fails
		c.want(a, http.StatusOK, "")
		c.want(b, http.StatusOK, "") // the clients have them in common
	}
}

// The election dials by itself, so that it shares no connection with the work.
func TestAClientKeepsItsDialerWhenAuthoritiesChange(t *testing.T) {
	c := newCredentials(t)
	work := c.client()
	var dialed atomic.Int32
	c.restConfig = restclient.CopyConfig(c.restConfig)
	c.restConfig.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	election := c.client()
	c.want(work, http.StatusOK, "")
	c.want(election, http.StatusOK, "")
	next := newSigned(t)
	c.serve(next)
	c.write("ca.crt", string(next.authority))
	for _, client := range []*http.Client{work, election} {
		c.want(client, 0, "certificate signed by unknown authority")
		before := dialed.Load()
		c.want(client, http.StatusOK, "")
		if got, want := dialed.Load() > before, client == election; got != want {
			t.Errorf("dialed by the election's dialer: %t, want %t", got, want)
		}
	}
}

func TestCredentialsThatAreNotThere(t *testing.T) {
	config := &restclient.Config{Host: "https://api.test", BearerTokenFile: filepath.Join(t.TempDir(), "missing")}
	if err := FollowCredentials(config); err == nil || !strings.Contains(err.Error(), config.BearerTokenFile) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestOtherCredentialsAreLeftAlone(t *testing.T) {
	config := &restclient.Config{Host: "https://api.test", BearerToken: "token", TLSClientConfig: restclient.TLSClientConfig{CAData: newSigned(t).authority}}
	before := restclient.CopyConfig(config)
	if err := FollowCredentials(config); err != nil {
		t.Fatal(err)
	}
	if config.WrapTransport != nil || config.BearerToken != before.BearerToken {
		t.Errorf("the configuration was changed to %v", config)
	}
}
