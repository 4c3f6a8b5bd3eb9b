// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"net"
	"sync"
)

// crowd is a listener that keeps no more than so many connections open: for a new one
// the oldest goes. A probe thereby always gets through, which is new and soon answered,
// and who connects to do nothing is the first to go.
type crowd struct {
	net.Listener
	most int

	mutex sync.Mutex
	open  *list.List // of *guest, the oldest first
}

func newCrowd(listener net.Listener, most int) *crowd {
	return &crowd{Listener: listener, most: most, open: list.New()}
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: connection, crowd: c}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for c.open.Len() >= c.most {
		oldest := c.open.Remove(c.open.Front()).(*guest)
		oldest.Conn.Close() // its server notices
	}
	g.place = c.open.PushBack(g)
	return g, nil
}

// guest is a connection of a crowd.
type guest struct {
	net.Conn
	crowd *crowd
	place *list.Element
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.crowd.mutex.Lock()
	g.crowd.open.Remove(g.place) // does nothing if it is in it no more
	g.crowd.mutex.Unlock()
	return g.Conn.Close()
}
