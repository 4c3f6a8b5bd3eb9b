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

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// Direction is one that bytes take over a [Link], or both.
type Direction int

// What goes to the API server, what comes from it, and all.
const (
	Requests Direction = 1 << iota
	Answers
	Both = Requests | Answers
)

// Link is a TCP proxy before the API server: the network between it and a client. It
// can stop passing bytes on, as a network does that drops packets, and go on as one
// does that sends them again.
type Link struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mutex       sync.Mutex
	flowing     map[Direction]chan struct{} // closed while bytes are passed on
	connections []*connection
	ended       bool
}

// connection is a client's, with the one to the target that belongs to it.
type connection struct {
	client, server net.Conn
	cut            chan struct{}
}

// StartLink starts a link to the API server of a cluster. It ends with the test.
func StartLink(t *testing.T, c *cluster.Cluster) *Link {
	t.Helper()
	server, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return startLink(t, server.Host)
}

func startLink(t *testing.T, target string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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

// URL is where the API server is reached over the link.
func (l *Link) URL() string { return "https://" + l.listener.Addr().String() }

// Kubeconfig returns the path of a kubeconfig that acts as a ServiceAccount of a
// cluster over the link.
func (l *Link) Kubeconfig(t *testing.T, c *cluster.Cluster, namespace, serviceAccount string) string {
	t.Helper()
	return Kubeconfig(t, c, namespace, serviceAccount, func(cluster *clientcmdapi.Cluster) { cluster.Server = l.URL() })
}

// Hold stops passing on what takes the direction, the ends of connections included.
// New connections can be made, but nobody answers on them.
func (l *Link) Hold(d Direction) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for direction, flowing := range l.flowing {
		if d&direction != 0 && isClosed(flowing) { // who waits for one that was held before goes on waiting for that
			l.flowing[direction] = make(chan struct{})
		}
	}
}

// Release passes on what was held, and then all that comes.
func (l *Link) Release() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, flowing := range l.flowing {
		if !isClosed(flowing) {
			close(flowing)
		}
	}
}

// Cut ends all connections. What was held on them is lost.
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

// add takes a connection into the link, unless that has ended.
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

// remove closes a connection of which one end is gone.
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
