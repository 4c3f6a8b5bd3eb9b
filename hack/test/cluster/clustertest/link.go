// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// Direction is the direction of bytes on a [Link], or both.
type Direction int

// Requests go to the API server, and Answers come from it.
const (
	Requests Direction = 1 << iota
	Answers
	Both = Requests | Answers
)

// Link is a TCP proxy before the API server that simulates the network to a client. It can
// stop passing bytes on, like a network that drops packets, and resume, like one that
// retransmits them.
type Link struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mutex       sync.Mutex
	flowing     map[Direction]chan struct{} // closed while bytes are passed on
	connections []*connection
	ended       bool
}

// connection is a client's connection and the corresponding one to the target.
type connection struct {
	client, server net.Conn
	cut            chan struct{}
}

// StartLink starts a link to the API server of a cluster. It stops at the end of the test.
func StartLink(t *testing.T, c *cluster.Cluster) *Link {
	t.Helper()
	return StartLinkAt(t, c, "127.0.0.1:0")
}

// StartLinkAt is StartLink for a link that listens at a given address.
func StartLinkAt(t *testing.T, c *cluster.Cluster, address string) *Link {
	t.Helper()
	server, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return startLink(t, address, server.Host)
}

func startLink(t *testing.T, address, target string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, target: target, flowing: map[Direction]chan struct{}{}}
	l.flowing[Requests], l.flowing[Answers] = closed(), closed()
	l.running.Go(l.serve)
	t.Cleanup(func() {
		l.mutex.Lock()
		l.ended = true
		l.mutex.Unlock()
		listener.Close()
		l.Cut()
		l.running.Wait()
	})
	return l
}

// URL returns the URL of the API server over the link.
func (l *Link) URL() string { return "https://" + l.listener.Addr().String() }

// Kubeconfig returns the path of a kubeconfig that authenticates as a ServiceAccount of a
// cluster and connects over the link.
func (l *Link) Kubeconfig(t *testing.T, c *cluster.Cluster, namespace, serviceAccount string) string {
	t.Helper()
	return Kubeconfig(t, c, namespace, serviceAccount, func(cluster *clientcmdapi.Cluster) { cluster.Server = l.URL() })
}

// Hold stops passing on bytes in the direction, and the closing of connections. New
// connections can be opened, but get no answers.
func (l *Link) Hold(d Direction) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for direction, flowing := range l.flowing {
		if d&direction != 0 && isClosed(flowing) { // if already held, waiters keep waiting for that channel
			l.flowing[direction] = make(chan struct{})
		}
	}
}

// Release passes on the held bytes, and all bytes from now on.
func (l *Link) Release() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, flowing := range l.flowing {
		if !isClosed(flowing) {
			close(flowing)
		}
	}
}

// Cut closes all connections. Bytes held on them are lost.
func (l *Link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, c := range l.connections {
		c.close()
	}
	l.connections = nil
}

// close is called once, with the link's mutex held.
func (c *connection) close() {
	close(c.cut)
	c.client.Close()
	c.server.Close()
}

func (l *Link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			client.Close()
			continue
		}
		c := &connection{client, server, make(chan struct{})}
		if !l.add(c) {
			return
		}
		l.running.Go(func() { l.pass(c, Requests, client, server) })
		l.running.Go(func() { l.pass(c, Answers, server, client) })
	}
}

// add adds a connection to the link, unless the link is closed.
func (l *Link) add(c *connection) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended {
		c.close()
		return false
	}
	l.connections = append(l.connections, c)
	return true
}

// pass copies from one end of a connection to the other until either ends.
func (l *Link) pass(c *connection, d Direction, from, to net.Conn) {
	defer l.remove(c)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mutex.Lock()
		flowing := l.flowing[d]
		l.mutex.Unlock()
		select {
		case <-flowing:
		case <-c.cut:
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// remove closes a connection after one end is gone.
func (l *Link) remove(c *connection) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if i := slices.Index(l.connections, c); i >= 0 {
		l.connections = slices.Delete(l.connections, i, i+1)
		c.close()
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
