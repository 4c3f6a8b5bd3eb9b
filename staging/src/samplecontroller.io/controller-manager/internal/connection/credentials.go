// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection makes clients notice changed credentials and dead connections sooner
// than client-go does by itself, because its own periods are longer than a Lease.
package connection

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
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
		all := &bundles{
			config:      transport.Config{TLS: c.TLS, Proxy: c.Proxy, DisableCompression: c.DisableCompression},
			byTransport: map[http.RoundTripper]*authorities{},
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &trusting{all.of(next)} })
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

// bundles are the authorities that a file names, for each transport that was made with it.
// A client that has a transport of its own, as the election has, keeps one.
type bundles struct {
	config transport.Config // how to reach the API server, but for credentials and dialer

	mutex       sync.Mutex
	byTransport map[http.RoundTripper]*authorities
}

// of returns the authorities for a transport.
func (b *bundles) of(own http.RoundTripper) *authorities {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	a := b.byTransport[own]
	if a == nil {
		a = &authorities{config: b.config, own: own}
		b.byTransport[own] = a
	}
	return a
}

// authorities are those that may have signed the API server's certificate.
type authorities struct {
	config transport.Config
	own    http.RoundTripper // with what the file said at first

	mutex   sync.Mutex
	content []byte            // of the file, as it was read again
	trusted http.RoundTripper // with that; nil: it was not
}

// transport returns the one to use.
func (a *authorities) transport() http.RoundTripper {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.trusted != nil {
		return a.trusted
	}
	return a.own
}

// readAgain reads the file if it may name others by now.
func (a *authorities) readAgain(logger klog.Logger) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	content, err := os.ReadFile(a.config.TLS.CAFile)
	if err != nil || len(content) == 0 || bytes.Equal(content, a.content) {
		return err
	}
	dial, err := utilnet.DialerFor(a.own)
	if err != nil {
		return err
	}
	config := a.config
	config.TLS.CAData, config.TLS.ReloadCAFiles = content, true
	// client-go would return the transport that it has for this file, but it has none for
	// a new holder of the dialer.
	config.DialHolder = &transport.DialHolder{Dial: dial}
	trusted, err := transport.New(&config)
	if err != nil {
		return err
	}
	a.content, a.trusted = content, trusted
	logger.Info("Reloaded API server CA bundle", "file", config.TLS.CAFile)
	return nil
}

// trusting is a transport that trusts the authorities.
type trusting struct{ *authorities }

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *trusting) WrappedRoundTripper() http.RoundTripper { return t.transport() }

// RoundTrip implements http.RoundTripper.
func (t *trusting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.transport().RoundTrip(request)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if again := t.readAgain(klog.FromContext(request.Context())); again != nil {
			err = fmt.Errorf("%w; reading %s again: %w", err, t.config.TLS.CAFile, again)
		}
	}
	return response, err
}
