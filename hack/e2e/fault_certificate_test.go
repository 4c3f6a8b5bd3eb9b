// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// certificateReadAgain is how often the files of a client certificate are read again, and
// a little.
const certificateReadAgain = 35 * time.Second

// clientAuthority returns an authority whose client certificates the API server accepts.
func clientAuthority(t *testing.T) *authority {
	t.Helper()
	a := newAuthority(t, "another-client-ca")
	path := filepath.Join(testCluster.Dir, "kube-apiserver", "client-cert-auth-ca.crt")
	bundle, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replaceFile(t, path, append(bundle, a.pem()...)) // the API server watches it
	t.Cleanup(func() { replaceFile(t, path, bundle) })
	mine := a.sign(t, "somebody", time.Now().Add(time.Hour))
	waitUntil(t, "the API server accepts certificates of the authority", func(ctx context.Context) error {
		config := rest.AnonymousClientConfig(testCluster.Config())
		config.CertData, config.KeyData = mine.certificate, mine.key
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", response.Status)
		}
		return nil
	})
	return a
}

// TestFaultTheClientCertificateIsRotated replaces the certificate by which the daemon is
// known to the API server, first while the old one is good, then when that has expired.
func TestFaultTheClientCertificateIsRotated(t *testing.T) {
	t.Parallel()
	l := newLoner(t)
	a := clientAuthority(t)
	var certificateFile, keyFile string
	write := func(p pair) time.Time {
		replaceFile(t, keyFile, p.key)
		replaceFile(t, certificateFile, p.certificate)
		return time.Now()
	}
	kubeconfig := l.kubeconfig(t, func(dir string, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		certificateFile, keyFile = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
		user.ClientCertificate, user.ClientKey = certificateFile, keyFile
		write(a.sign(t, l.user(), time.Now().Add(time.Hour)))
	})
	l.start(t, kubeconfig, "--controllers=icecream")
	icecreams.create(t, l.ns, "before", 1)
	icecreams.waitReady(t, l.ns, "before", 1)
	if ids := l.credentials(t); len(ids) != 1 || !strings.HasPrefix(ids[0], "X509SHA256=") {
		t.Fatalf("credentials %q, want one certificate", ids)
	}
	waitCredentials := func(n int) {
		waitUntil(t, "the new certificate is used", func(context.Context) error {
			if ids := l.credentials(t); len(ids) != n {
				return fmt.Errorf("credentials %q", ids)
			}
			return nil
		})
	}

	expiry := time.Now().Add(certificateReadAgain + 10*time.Second) // still good when it is found
	rotated := write(a.sign(t, l.user(), expiry))
	waitCredentials(2)
	took := time.Since(rotated)
	wantSoon(t, "to use the new certificate", took, certificateReadAgain)
	icecreams.create(t, l.ns, "rotated", 1)
	icecreams.waitReady(t, l.ns, "rotated", 1)
	if n := l.unauthenticated(t); n > 0 {
		t.Errorf("%d requests were refused while there was a good certificate, want none", n)
	}
	gap := l.longestGap(t)

	waitUntil(t, "the lead is lost, because the certificate has expired", func(context.Context) error {
		if !strings.Contains(l.log.String(), `"Lost the lease,`) {
			return fmt.Errorf("not yet, it expires at %v", expiry)
		}
		return nil
	})
	icecreams.create(t, l.ns, "meanwhile", 1)
	given := write(a.sign(t, l.user(), time.Now().Add(time.Hour)))
	leads := max(0, l.waitRenewal(given).Sub(given))
	wantSoon(t, "to lead again with a new certificate", leads, certificateReadAgain)
	icecreams.waitReady(t, l.ns, "meanwhile", 1)
	l.wantCreatedOnce(t)
	l.stop()
	reportFault(t, faultRow{
		ID: "D8", Fault: "the client certificate is replaced, in time and late",
		Ours: fmt.Sprintf("in time: used after %s, 0 requests refused, longest time without a renewal %s; late: leads %s after it has a new one", seconds(took), seconds(gap), seconds(leads)),
		Peer: "none: client-go alone looks each 5 min",
	})
}

// frontend is a server before the API server whose certificate can be replaced.
type frontend struct {
	*httptest.Server
	served atomic.Pointer[tls.Certificate]
}

func startFrontend(t *testing.T, p pair) *frontend {
	t.Helper()
	target, err := url.Parse(testCluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(testCluster.Config().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	f := &frontend{}
	f.served.Store(p.load(t))
	f.Server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	f.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	f.EnableHTTP2 = true
	f.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*f.served.Load()}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	f.StartTLS()
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		transport.CloseIdleConnections()
	})
	return f
}

// serve has new connections see another certificate, and ends the others, as a restart
// does.
func (f *frontend) serve(t *testing.T, p pair) time.Time {
	t.Helper()
	f.served.Store(p.load(t))
	f.CloseClientConnections()
	return time.Now()
}

// TestFaultTheAuthorityIsRotated has the certificate of the API server signed by another
// authority: first one that the daemon's file already names beside the old one, then one
// that the file is late to name.
func TestFaultTheAuthorityIsRotated(t *testing.T) {
	t.Parallel()
	l := newLoner(t)
	year := time.Now().AddDate(1, 0, 0)
	first, second, third := newAuthority(t, "first-ca"), newAuthority(t, "second-ca"), newAuthority(t, "third-ca")
	server := startFrontend(t, first.sign(t, "api", year))
	var bundle string
	kubeconfig := l.kubeconfig(t, func(dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		bundle = filepath.Join(dir, "ca.crt")
		replaceFile(t, bundle, first.pem())
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = server.URL, bundle, nil
		user.TokenFile = filepath.Join(dir, "token")
		replaceFile(t, user.TokenFile, []byte(l.token(t, nil)))
	})
	l.start(t, kubeconfig, "--controllers=status-aggregator")
	lost := func() int { return strings.Count(l.log.String(), `"Lost the lease,`) }

	replaceFile(t, bundle, slices.Concat(first.pem(), second.pem()))
	switched := server.serve(t, second.sign(t, "api", year))
	inTime := max(0, l.waitRenewal(switched).Sub(switched))
	if n := lost(); n > 0 {
		t.Errorf("the lead was lost %d times although the file named the authority in time", n)
	}

	server.serve(t, third.sign(t, "api", year))
	waitUntil(t, "the lead is lost, because the API server is not trusted", func(context.Context) error {
		if lost() == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if code, body, err := l.get(t.Context(), "/livez"); err != nil || code != http.StatusOK {
		t.Errorf("/livez while the API server is not trusted: %d %s %v", code, body, err)
	}
	replaceFile(t, bundle, third.pem())
	given := time.Now()
	late := max(0, l.waitRenewal(given).Sub(given))
	wantSoon(t, "to lead again with the authority", late, soon)
	l.stop()
	reportFault(t, faultRow{
		ID: "D8b", Fault: "the API server's certificate is signed by another authority; the file names it in time, and late",
		Ours: fmt.Sprintf("in time: next renewal after %s; late: leads %s after it is named", seconds(inTime), seconds(late)),
		Peer: "none: client-go alone reads the file again each 5 min",
	})
}
