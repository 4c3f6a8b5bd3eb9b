// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// TestOutage checks which callers are served while the API server answers no review: those whose
// permission is cached and who need no TokenReview, and everybody on the open paths.
func TestOutage(t *testing.T) {
	const ok, unauthorized, failed = http.StatusOK, http.StatusUnauthorized, http.StatusInternalServerError
	answers := reviews(t)
	var away atomic.Bool
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "etcd is away", http.StatusServiceUnavailable)
			return
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	ca, certificate := newClientCertificate(t, "admin")

	tests := map[string]struct {
		authorizedTTL      time.Duration
		open               string // a path
		token, certificate int    // answers to GET /metrics in the outage
		anonymous          int
	}{
		"nothing cached":          {0, "", unauthorized, failed, unauthorized},
		"permission cached":       {time.Hour, "", unauthorized, ok, unauthorized},
		"metrics are open to all": {0, "/metrics", unauthorized, ok, ok},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			away.Store(false)
			o := newOptions(t)
			o.Authentication.ClientCert.ClientCA = ca
			o.Authentication.CacheTTL = 0
			o.Authorization.AllowCacheTTL, o.Authorization.DenyCacheTTL = tc.authorizedTTL, 0
			o.Authentication.WebhookRetryBackoff.Steps, o.Authorization.WebhookRetryBackoff.Steps = 1, 1
			if tc.open != "" {
				o.Authorization.AlwaysAllowPaths = append(o.Authorization.AlwaysAllowPaths, tc.open)
			}
			config, err := o.Config(t.Context(), writeKubeconfig(t, api.URL))
			if err != nil {
				t.Fatal(err)
			}
			server := start(t, config)
			want := func(when, path, user string, certificates []tls.Certificate, code int) {
				t.Helper()
				got, body, err := server.doWith(certificates, http.MethodGet, path, user, "")
				if err != nil || got != code {
					t.Errorf("%s: %s as %q with %d certificates: %d, want %d: %s, %v", when, path, user, len(certificates), got, code, body, err)
				}
			}
			want("before", "/metrics", "admin", nil, ok)
			want("before", "/metrics", "", certificate, ok)
			away.Store(true)
			want("in the outage", "/metrics", "admin", nil, tc.token)
			want("in the outage", "/metrics", "", certificate, tc.certificate)
			want("in the outage", "/metrics", "", nil, tc.anonymous)
			want("in the outage", "/debug/pprof/", "", certificate, failed) // not read before
			want("in the outage", "/healthz", "", nil, ok)
		})
	}
}

// newClientCertificate returns the file of a new CA, and a certificate that it signed for a user.
func newClientCertificate(t *testing.T, user string) (ca string, certificate []tls.Certificate) {
	t.Helper()
	key := newKey(t)
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "clients"}, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: authority.Raw})
	if err := os.WriteFile(ca, content, 0o600); err != nil {
		t.Fatal(err)
	}
	own := newKey(t)
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: user},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, own.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return ca, []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: own}}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
