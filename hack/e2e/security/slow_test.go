// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

const (
	// drip is how often a slow client sends a byte.
	drip = 10 * time.Second
)

// slowWay is what a client can do to keep a connection busy with next to nothing.
type slowWay struct {
	name string
	// begin makes a connection and returns what to send on it byte by byte.
	begin func(address string) (connection net.Conn, rest []byte, err error)
	// most is when the daemon gives up, in seconds, by its manual.
	most int
}

var slowWays = []slowWay{
	{"a byte of a header each 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, "http/1.1")
		return connection, []byte("GET /healthz HTTP/1.1\r\nHost: slow\r\nX-Slow: " + strings.Repeat("x", 1000)), err
	}, 32},
	{"a byte of a handshake each 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := net.Dial("tcp", address)
		return connection, append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 500)...), err
	}, 32},
	{"nothing", func(address string) (net.Conn, []byte, error) {
		connection, err := net.Dial("tcp", address)
		return connection, nil, err
	}, 32},
	{"a byte of a body each 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, "http/1.1")
		if err == nil {
			_, err = io.WriteString(connection, "POST /healthz HTTP/1.1\r\nHost: slow\r\nContent-Length: 1000\r\n\r\n")
		}
		return connection, []byte(strings.Repeat("x", 1000)), err
	}, 60},
	{"requests whose answers it does not take, by HTTP/2", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, http2.NextProtoTLS)
		if err == nil {
			err = askWithoutWindow(connection)
		}
		return connection, nil, err
	}, 60},
}

// dialTLS connects by TLS for a protocol.
func dialTLS(address, protocol string) (*tls.Conn, error) {
	return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
}

// askWithoutWindow asks for a probe's answer, of which the server may send no byte.
func askWithoutWindow(connection net.Conn) error {
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(connection, connection)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headerBlock(http.MethodGet, "/healthz?verbose"), EndStream: true, EndHeaders: true})
}

// headerBlock encodes the header of a request with further fields.
func headerBlock(method, path string, fields ...hpack.HeaderField) []byte {
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "test"}, {Name: ":path", Value: path},
	}, fields...) {
		_ = encoder.WriteField(field) // to a strings.Builder, which cannot fail
	}
	return []byte(block.String())
}

// waitGone sends the rest of what a client has to say, and returns how long after its
// begin the server had closed the connection, or ended the request by HTTP/2.
func waitGone(ctx context.Context, connection net.Conn, rest []byte) time.Duration {
	began := time.Now()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if c, ok := connection.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
			framer := http2.NewFramer(io.Discard, connection)
			for frame, err := framer.ReadFrame(); err == nil; frame, err = framer.ReadFrame() {
				if frame.Header().Type == http2.FrameRSTStream {
					return
				}
			}
		}
		_, _ = io.Copy(io.Discard, connection)
	}()
	tick := time.NewTicker(drip)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return time.Since(began)
		case <-gone:
			return time.Since(began)
		case <-tick.C:
			if len(rest) > 0 {
				_, _ = connection.Write(rest[:1]) // who reads notices if it is closed
				rest = rest[1:]
			}
		}
	}
}

// beginSlowly makes a connection. It tries again if the server, which keeps only so many,
// closes it at once for another.
func (w slowWay) beginSlowly(ctx context.Context, address string, replaced *atomic.Int32) (net.Conn, []byte, error) {
	for {
		connection, rest, err := w.begin(address)
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
			return connection, rest, err
		}
		replaced.Add(1)
		select { // all at once would turn away each other, and the probes, for as long as they like
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(time.Second):
		}
	}
}

// TestFaultSlowClients connects many clients at once that are slow in different ways; in long
// mode more than the 1,000 connections that the daemon keeps.
func TestFaultSlowClients(t *testing.T) {
	t.Parallel()
	each := framework.Count(220, 20)
	l := startServing(t)
	address := strings.TrimPrefix(l.URL, "https://")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	took := make([][]time.Duration, len(slowWays))
	var replaced atomic.Int32
	var begun, clients sync.WaitGroup
	for i, way := range slowWays {
		took[i] = make([]time.Duration, each)
		begun.Add(each)
		for n := range each {
			clients.Go(func() {
				connection, rest, err := way.beginSlowly(ctx, address, &replaced)
				begun.Done()
				if err != nil {
					t.Errorf("%s: %v", way.name, err)
					return
				}
				defer connection.Close()
				took[i][n] = waitGone(ctx, connection, rest)
			})
		}
	}
	// While so many connect in one moment, a probe that came just before is the oldest, and
	// the first to go.
	begun.Wait()
	probes := probe(l)
	clients.Wait()
	if ctx.Err() != nil {
		t.Errorf("connections were not closed in two minutes: the longest lasted %v", slices.Max(slices.Concat(took...)))
	}
	answered, slowest := probes()
	all := each * len(slowWays)
	if int(replaced.Load()) > all/10 {
		t.Errorf("%d connections of %d were closed before they had begun", replaced.Load(), all)
	}
	l.Stop()
	figures := []string{fmt.Sprintf("%d probes answered meanwhile, the slowest in %d ms", answered, slowest.Milliseconds())}
	for i, way := range slowWays {
		figures = append(figures, fmt.Sprintf("%s: gone after %s to %s (%d s by the manual)",
			way.name, framework.Seconds(slices.Min(took[i])), framework.Seconds(slices.Max(took[i])), way.most))
	}
	framework.ReportFault(t, framework.FaultRow{
		ID: "D11", Fault: fmt.Sprintf("%d clients at once that send, each for itself, next to nothing", all),
		Ours: strings.Join(figures, "\n           "),
		Peer: "none: Kubernetes' own servers let bodies, and answers that nobody takes, last for ever",
	})
}

// startServing starts a replica for what it serves. Its certificate costs little to prove.
func startServing(t *testing.T, flags ...string) *framework.Isolated {
	t.Helper()
	l := framework.NewIsolated(t)
	kubeconfig, _ := l.TokenKubeconfig(t, l.Token(t, nil))
	p := framework.NewAuthority(t, "serving-ca").Sign(t, "daemon", time.Now().AddDate(1, 0, 0))
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	framework.ReplaceFile(t, certificate, p.Certificate)
	framework.ReplaceFile(t, key, p.Key)
	return l.Start(t, kubeconfig, append([]string{"--controllers=status-aggregator", "--tls-cert-file=" + certificate, "--tls-private-key-file=" + key}, flags...)...)
}

// probe probes the replica all the time, each time as a new client, as the kubelet does,
// and wants each answer to be good. The returned function ends it, and returns how many
// answers there were and how long the slowest took.
func probe(l *framework.Isolated) (end func() (answered int, slowest time.Duration)) {
	l.T.Helper()
	return probePage(l, "/healthz")
}

// probePage is probe by one of the pages for that.
func probePage(l *framework.Isolated, page string) (end func() (answered int, slowest time.Duration)) {
	l.T.Helper()
	ctx, cancel := context.WithCancel(l.T.Context())
	var probing sync.WaitGroup
	var answered int
	var slowest time.Duration
	probing.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			code, body, err := l.Get(ctx, page)
			if ctx.Err() != nil {
				return
			}
			if err != nil || code != http.StatusOK {
				l.T.Errorf("%s: %d %s %v", page, code, body, err)
			}
			answered, slowest = answered+1, max(slowest, time.Since(began))
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() (int, time.Duration) {
		cancel()
		probing.Wait()
		return answered, slowest
	}
}
