// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"io"
	"net"
	"testing"
	"time"
)

// silence is how long a test waits to see that nothing arrives.
const silence = 50 * time.Millisecond

// echo starts a server that echoes what it receives. It returns the server's address and a
// channel with everything received.
func echo(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	all := make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 100)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						all <- "end"
						return
					}
					all <- string(buffer[:n])
					_, _ = conn.Write(buffer[:n]) // the test notices missing bytes
				}
			}()
		}
	}()
	return listener.Addr().String(), all
}

// caller is a client that uses a link to an echo server.
type caller struct {
	t    *testing.T
	conn net.Conn
	got  <-chan string // by the echo server
}

func call(t *testing.T) (*Link, *caller) {
	t.Helper()
	address, got := echo(t)
	link := startLink(t, address)
	c := &caller{t: t, got: got}
	c.dial(link)
	c.says("hello")
	c.isHeard("hello")
	c.hears("hello")
	return link, c
}

func (c *caller) dial(l *Link) {
	c.t.Helper()
	conn, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	c.conn = conn
}

func (c *caller) says(what string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, what); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) isHeard(want string) {
	c.t.Helper()
	select {
	case got := <-c.got:
		if got != want {
			c.t.Errorf("the server got %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		c.t.Fatalf("the server did not get %q", want)
	}
}

func (c *caller) isNotHeard() {
	c.t.Helper()
	select {
	case got := <-c.got:
		c.t.Errorf("the server got %q, want nothing", got)
	case <-time.After(silence):
	}
}

func (c *caller) hears(want string) {
	c.t.Helper()
	buffer := make([]byte, len(want))
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // fails only if closed, and then the read fails, too
	if _, err := io.ReadFull(c.conn, buffer); err != nil || string(buffer) != want {
		c.t.Errorf("the client got %q, %v; want %q", buffer, err, want)
	}
}

func (c *caller) hearsNothing() {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(silence))
	if n, err := c.conn.Read(make([]byte, 100)); err == nil || !err.(net.Error).Timeout() {
		c.t.Errorf("the client got %d bytes, %v; want nothing", n, err)
	}
}

func TestLinkHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then Direction
		heard       bool
	}{
		"requests":          {Requests, Requests, false}, // a second hold changes nothing
		"answers":           {Answers, Answers, true},
		"both":              {Both, Both, false},
		"answers, and both": {Answers, Both, false},
	} {
		t.Run(name, func(t *testing.T) {
			link, c := call(t)
			link.Hold(tc.first)
			link.Hold(tc.then)
			c.says("held")
			if tc.heard {
				c.isHeard("held")
			} else {
				c.isNotHeard()
			}
			c.hearsNothing()

			link.Release()
			if !tc.heard {
				c.isHeard("held")
			}
			c.hears("held")
			c.says("free")
			c.isHeard("free")
			c.hears("free")
		})
	}
}

func TestLinkCuts(t *testing.T) {
	link, c := call(t)
	link.Hold(Both)
	c.says("lost")
	c.isNotHeard() // the link has it
	link.Cut()
	c.isHeard("end")
	if n, err := c.conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("the client got %d bytes, want an error", n)
	}

	c.dial(link)
	c.says("held")
	c.isNotHeard()
	link.Release()
	c.isHeard("held")
	c.hears("held")
}
