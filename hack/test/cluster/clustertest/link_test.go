// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// silence is how long a test waits to see that nothing arrives.
const silence = 50 * time.Millisecond

// wire is a link and the two ends of a connection over it.
type wire struct {
	t              *testing.T
	link           *Link
	listener       net.Listener
	client, server net.Conn
}

func newWire(t *testing.T) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	w := &wire{t: t, link: startLink(t, "127.0.0.1:0", listener.Addr().String()), listener: listener}
	w.connect()
	return w
}

// connect opens a new connection.
func (w *wire) connect() {
	w.t.Helper()
	var err, serverErr error
	w.client, err = net.Dial("tcp", w.link.listener.Addr().String())
	w.server, serverErr = w.listener.Accept()
	if err := errors.Join(err, serverErr); err != nil {
		w.t.Fatal(err)
	}
	client, server := w.client, w.server
	w.t.Cleanup(func() { client.Close(); server.Close() })
}

// say sends a text from both ends.
func (w *wire) say(text string) {
	w.t.Helper()
	for _, end := range []net.Conn{w.client, w.server} {
		if _, err := io.WriteString(end, text); err != nil {
			w.t.Fatal(err)
		}
	}
}

// hear checks what arrives at one end. Nothing arrives if want is empty.
func (w *wire) hear(end net.Conn, want string) {
	w.t.Helper()
	wait := 10 * time.Second
	if want == "" {
		wait = silence
	}
	_ = end.SetReadDeadline(time.Now().Add(wait)) // fails only if closed, and then the read fails, too
	buffer := make([]byte, max(len(want), 1))
	n, err := io.ReadFull(end, buffer)
	if got := string(buffer[:n]); got != want || want == "" && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestLinkHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then     Direction
		request, answer string // what arrives in spite of the hold
	}{
		"requests":          {Requests, Requests, "", "held"}, // a second hold changes nothing
		"answers":           {Answers, Answers, "held", ""},
		"both":              {Both, Both, "", ""},
		"answers, and both": {Answers, Both, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.say("hello")
			w.hear(w.server, "hello")
			w.hear(w.client, "hello")
			w.link.Hold(tc.first)
			w.link.Hold(tc.then)
			w.say("held")
			w.hear(w.server, tc.request)
			w.hear(w.client, tc.answer)
			w.link.Release()
			w.say("free")
			w.hear(w.server, "heldfree"[len(tc.request):])
			w.hear(w.client, "heldfree"[len(tc.answer):])
		})
	}
}

func TestLinkCuts(t *testing.T) {
	w := newWire(t)
	w.link.Hold(Both)
	w.say("lost")
	w.hear(w.server, "") // the link has it
	w.link.Cut()
	for _, end := range []net.Conn{w.client, w.server} {
		_ = end.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := end.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v, want the end", n, err)
		}
	}
	w.connect()
	w.say("held")
	w.hear(w.server, "")
	w.link.Release()
	w.hear(w.server, "held")
	w.hear(w.client, "held")
}
