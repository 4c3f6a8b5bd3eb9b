// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// Proxy is an HTTP proxy before the API server of a cluster. It has no credentials of its own:
// its clients authenticate themselves.
type Proxy struct {
	*httptest.Server
	cluster *cluster.Cluster
}

// StartProxy starts a proxy. wrap gets the handler that forwards requests and returns the one
// to use. modify may change responses. It stops at the end of the test.
func StartProxy(t *testing.T, c *cluster.Cluster, wrap func(next http.Handler) http.Handler,
	modify func(*http.Response) error) *Proxy {
	t.Helper()
	return startProxy(t, c, c.Config().Host, nil, wrap, modify)
}

// StartHTTP2Proxy is StartProxy with a proxy that speaks HTTP/2, as the API server does, so that
// requests share a connection.
func StartHTTP2Proxy(t *testing.T, c *cluster.Cluster, wrap func(next http.Handler) http.Handler) *Proxy {
	t.Helper()
	return startProxy(t, c, c.Config().Host, &tls.Config{}, wrap, nil)
}

// StartProxyAs is StartProxy with a proxy that calls certificate for the serving certificate
// of each connection.
func StartProxyAs(t *testing.T, c *cluster.Cluster, certificate func() *tls.Certificate) *Proxy {
	t.Helper()
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*certificate()}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	return startProxy(t, c, c.Config().Host, config, func(next http.Handler) http.Handler { return next }, nil)
}

// startProxy starts a proxy for the API server at a URL.
func startProxy(t *testing.T, c *cluster.Cluster, host string, config *tls.Config,
	wrap func(next http.Handler) http.Handler, modify func(*http.Response) error) *Proxy {
	t.Helper()
	target, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(c.Config().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}}
	server := httptest.NewUnstartedServer(wrap(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: modify,
		// The client must see what it would see without a proxy, not an error response.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}))
	server.TLS = config
	server.EnableHTTP2 = config != nil                  // the daemon uses HTTP/2, so certificates are replaced under it
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of clients that do not trust the certificate
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return &Proxy{server, c}
}

// Kubeconfig returns the path of a kubeconfig that authenticates as a ServiceAccount and
// connects through the proxy.
func (p *Proxy) Kubeconfig(t *testing.T, namespace, serviceAccount string) string {
	t.Helper()
	return Kubeconfig(t, p.cluster, namespace, serviceAccount, func(cluster *clientcmdapi.Cluster) {
		cluster.Server = p.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	})
}

// Kubeconfig returns the path of a kubeconfig that authenticates as a ServiceAccount of the
// cluster. change can modify how the cluster is reached.
func Kubeconfig(t *testing.T, c *cluster.Cluster, namespace, serviceAccount string,
	change func(*clientcmdapi.Cluster)) string {
	t.Helper()
	path, err := c.ServiceAccountKubeconfig(t.Context(), namespace, serviceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		change(cluster)
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
