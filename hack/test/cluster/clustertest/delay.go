// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// Delayer is a proxy before the API server that delays the watch events of some resources, and
// passes everything else on immediately.
type Delayer struct {
	*Proxy
	delay atomic.Int64
	held  atomic.Pointer[chan struct{}]
	// Accepts are the Accept headers of the watches, by path.
	Accepts sync.Map
}

// StartDelayer starts a delayer for the resources with these paths. It delays nothing yet.
func StartDelayer(t *testing.T, c *cluster.Cluster, paths ...string) *Delayer {
	t.Helper()
	d := &Delayer{}
	justPass := func(next http.Handler) http.Handler { return next }
	d.Proxy = StartProxy(t, c, justPass, func(response *http.Response) error {
		r := response.Request
		watch := r.URL.Query().Get("watch") == "true"
		if watch {
			d.Accepts.Store(r.URL.Path, r.Header.Get("Accept"))
		}
		if watch && slices.Contains(paths, r.URL.Path) {
			response.Body = d.slow(r.Context(), response.Body)
		}
		return nil
	})
	return d
}

// By sets the delay of all events from now on.
func (d *Delayer) By(delay time.Duration) { d.delay.Store(int64(delay)) }

// Hold holds all events from now on, until release is called.
func (d *Delayer) Hold() (release func()) {
	held := make(chan struct{})
	d.held.Store(&held)
	return func() {
		d.held.Store(nil)
		close(held)
	}
}

// slowBody is a response body whose pieces can be read only some time after they arrived.
type slowBody struct {
	io.Closer
	ctx    context.Context // of the request: the client may leave while a piece waits
	pieces <-chan piece
	rest   string
}

type piece struct {
	content string
	err     error
	due     time.Time
	held    *chan struct{} // closed when released; nil if it was never held
}

func (d *Delayer) slow(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	pieces := make(chan piece, 10_000) // more than arrive during a delay
	send := func(p piece) {
		select {
		case pieces <- p:
		case <-ctx.Done():
		}
	}
	go func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := body.Read(buffer)
			p := piece{content: string(buffer[:n]), due: time.Now().Add(time.Duration(d.delay.Load())), held: d.held.Load()}
			if n > 0 {
				send(p)
			}
			if err != nil { // which may come with the last piece
				p.content, p.err = "", err
				send(p)
				return
			}
			if ctx.Err() != nil {
				return
			}
		}
	}()
	return &slowBody{Closer: body, ctx: ctx, pieces: pieces}
}

func (b *slowBody) Read(buffer []byte) (int, error) {
	for b.rest == "" {
		select {
		case p := <-b.pieces:
			if p.held != nil {
				select {
				case <-*p.held:
				case <-b.ctx.Done():
					return 0, b.ctx.Err()
				}
			}
			select {
			case <-time.After(time.Until(p.due)):
			case <-b.ctx.Done():
				return 0, b.ctx.Err()
			}
			if b.rest = p.content; b.rest == "" {
				return 0, p.err
			}
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n, err := strings.NewReader(b.rest).Read(buffer)
	b.rest = b.rest[n:]
	return n, err
}
