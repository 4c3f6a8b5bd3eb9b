// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"net/url"
	"sync"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// proxy is a TCP proxy before the API server that can stop passing bytes on, as a
// network does that drops packets.
type proxy struct {
	listener net.Listener
	target   string
	ended    chan struct{}
	copying  sync.WaitGroup

	mutex   sync.Mutex
	flowing chan struct{} // closed while bytes are passed on
	conns   []net.Conn
}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	server, err := url.Parse(testCluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: server.Host, ended: make(chan struct{}), flowing: make(chan struct{})}
	close(p.flowing)
	var serving sync.WaitGroup
	serving.Go(p.serve)
	t.Cleanup(func() {
		close(p.ended)
		listener.Close()
		p.mutex.Lock()
		for _, conn := range p.conns {
			conn.Close()
		}
		p.mutex.Unlock()
		serving.Wait()
		p.copying.Wait()
	})
	return p
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mutex.Lock()
		p.conns = append(p.conns, client, server)
		p.mutex.Unlock()
		p.copying.Go(func() { p.pass(client, server) })
		p.copying.Go(func() { p.pass(server, client) })
	}
}

// pass copies from one connection to the other until either ends.
func (p *proxy) pass(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mutex.Lock()
			flowing := p.flowing
			p.mutex.Unlock()
			select {
			case <-flowing:
			case <-p.ended:
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold stops passing bytes on, in both directions, until the test ends.
func (p *proxy) hold() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.flowing = make(chan struct{})
}

// kubeconfig returns the path of a kubeconfig that acts as the daemon's
// ServiceAccount through the proxy.
func (p *proxy) kubeconfig(t *testing.T) string {
	t.Helper()
	return clustertest.Kubeconfig(t, testCluster, daemonName, daemonName, func(cluster *clientcmdapi.Cluster) {
		cluster.Server = "https://" + p.listener.Addr().String()
	})
}
