// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// FollowClientCertificates has all clients that are made from now on look each 30 seconds
// for a new client certificate in the files that they have theirs from. client-go's own
// five minutes are much longer than a Lease. To be called before a client is made.
func FollowClientCertificates() { transport.CertCallbackRefreshDuration = 30 * time.Second }

// FollowCredentials has the clients that are made of a configuration read its files
// again as soon as these may be out of date: that of the token when the API server
// refuses the token, that of the authorities when the API server's certificate is signed
// by none of them. What is replaced there is then used by the next request. Otherwise
// they are read again each minute and each five minutes, as client-go does it.
func FollowCredentials(config *restclient.Config) error {
	if config.CAFile != "" && len(config.CAData) == 0 && config.ExecProvider == nil {
		c, err := config.TransportConfig()
		if err != nil {
			return err
		}
		a := &authorities{config: transport.Config{TLS: c.TLS, Proxy: c.Proxy, DisableCompression: c.DisableCompression}}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &trusting{a, next} })
	}
	if config.BearerTokenFile != "" {
		source := transport.NewCachedFileTokenSource(config.BearerTokenFile)
		if _, err := source.Token(); err != nil {
			return err
		}
		config.Wrap(transport.ResettableTokenSourceWrapTransport(source))
		config.BearerToken, config.BearerTokenFile = "", ""
	}
	return nil
}

// authorities are those who may have signed the API server's certificate: whom a file
// names.
type authorities struct {
	config transport.Config // how to reach the API server, but for who asks

	mutex   sync.Mutex
	content []byte            // of the file, as it was read again
	trusted http.RoundTripper // with that; nil: it was not
}

// transport returns the one to use in place of the client's own.
func (a *authorities) transport(own http.RoundTripper) http.RoundTripper {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.trusted != nil {
		return a.trusted
	}
	return own
}

// readAgain reads the file if it may name others by now.
func (a *authorities) readAgain(logger klog.Logger) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	content, err := os.ReadFile(a.config.TLS.CAFile)
	if err != nil || len(content) == 0 || bytes.Equal(content, a.content) {
		return err
	}
	config := a.config
	config.TLS.CAData, config.TLS.ReloadCAFiles = content, true
	// client-go would return the transport that it has for this file, but for one with
	// this dialer it has none.
	config.DialHolder = &transport.DialHolder{Dial: (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext}
	trusted, err := transport.New(&config)
	if err != nil {
		return err
	}
	a.content, a.trusted = content, trusted
	logger.Info("Read again who may sign the certificate of the API server", "file", config.TLS.CAFile)
	return nil
}

// trusting is a transport that trusts the authorities.
type trusting struct {
	*authorities
	own http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *trusting) WrappedRoundTripper() http.RoundTripper { return t.transport(t.own) }

// RoundTrip implements http.RoundTripper.
func (t *trusting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.transport(t.own).RoundTrip(request)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if again := t.readAgain(klog.FromContext(request.Context())); again != nil {
			err = fmt.Errorf("%w; reading %s again: %w", err, t.config.TLS.CAFile, again)
		}
	}
	return response, err
}
