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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const (
	// drip is how often a slow client sends a byte.
	drip = 10 * time.Second
)

// slowWay is a way for a client to keep a connection busy at almost no cost.
type slowWay struct {
	name string
	// begin opens a connection and returns the bytes to send on it one by one.
	begin func(address string) (connection net.Conn, rest []byte, err error)
	// most is the number of seconds after which the daemon gives up, according to its manual.
	most int
}

var slowWays = []slowWay{
	{"one header byte every 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, "http/1.1")
		return connection, []byte("GET /healthz HTTP/1.1\r\nHost: slow\r\nX-Slow: " + strings.Repeat("x", 1000)), err
	}, 32},
	{"one handshake byte every 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := net.Dial("tcp", address)
		return connection, append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 500)...), err
	}, 32},
	{"nothing", func(address string) (net.Conn, []byte, error) {
		connection, err := net.Dial("tcp", address)
		return connection, nil, err
	}, 32},
	{"one body byte every 10 s", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, "http/1.1")
		if err == nil {
			_, err = io.WriteString(connection, "POST /healthz HTTP/1.1\r\nHost: slow\r\nContent-Length: 1000\r\n\r\n")
		}
		return connection, []byte(strings.Repeat("x", 1000)), err
	}, 60},
	{"HTTP/2 requests whose responses the client does not read", func(address string) (net.Conn, []byte, error) {
		connection, err := dialTLS(address, http2.NextProtoTLS)
		if err == nil {
			err = askWithoutWindow(connection)
		}
		return connection, nil, err
	}, 60},
}

// dialTLS opens a TLS connection for a protocol.
func dialTLS(address, protocol string) (*tls.Conn, error) {
	return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
}

// askWithoutWindow requests a probe, but lets the server send no byte of the response.
func askWithoutWindow(connection net.Conn) error {
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(connection, connection)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headerBlock(http.MethodGet, "/healthz?verbose"),
		EndStream: true, EndHeaders: true})
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

// waitGone sends the rest of the client's bytes. It returns how long after its start the
// server closed the connection, or ended the request over HTTP/2.
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
				_, _ = connection.Write(rest[:1]) // the reader notices if it is closed
				rest = rest[1:]
			}
		}
	}
}

// beginSlowly opens a connection. It retries if the server, which limits its connections,
// closes it at once in favor of another.
func (w slowWay) beginSlowly(ctx context.Context, address string, replaced *atomic.Int32) (net.Conn, []byte, error) {
	for {
		connection, rest, err := w.begin(address)
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
			return connection, rest, err
		}
		replaced.Add(1)
		select { // all at once would displace each other, and the probes, forever
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(time.Second):
		}
	}
}

// TestFaultSlowClients connects many clients that are slow in different ways. In long mode
// there are more than the 1,000 connections that the daemon keeps.
func TestFaultSlowClients(t *testing.T) {
	t.Parallel()
	each := framework.Count(220, 20)
	l := startServing(t)
	address := strings.TrimPrefix(l.URL, "https://")
	ctx, cancel := context.WithTimeout(t.Context(), closedWithin)
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
	// While many clients connect at the same moment, a probe that came just before is the
	// oldest connection, and the first to be closed.
	begun.Wait()
	probes := probe(l)
	clients.Wait()
	if ctx.Err() != nil {
		longest := slices.Max(slices.Concat(took...))
		t.Errorf("connections were not closed within %v: the longest lasted %v", closedWithin, longest)
	}
	answered, slowest := probes()
	all := each * len(slowWays)
	l.Stop()
	figures := []string{
		fmt.Sprintf("%d probes answered during the test, the slowest in %d ms", answered, slowest.Milliseconds()),
		// More on a slow machine, where many handshakes are open at once.
		fmt.Sprintf("%d connections opened again, because the limit had closed them during the handshake", replaced.Load()),
	}
	for i, way := range slowWays {
		figures = append(figures, fmt.Sprintf("%s: closed after %s to %s (limit in the manual: %d s)",
			way.name, framework.Seconds(slices.Min(took[i])), framework.Seconds(slices.Max(took[i])), way.most))
	}
	framework.ReportFault(t, framework.FaultRow{
		ID: "D11", Fault: fmt.Sprintf("%d concurrent clients that send almost nothing", all),
		Ours: strings.Join(figures, "\n           "),
		Peer: "none: Kubernetes' own servers do not time out bodies and unread responses",
	})
}

// startServing starts a replica to test what it serves. Its certificate is cheap to verify.
func startServing(t *testing.T, flags ...string) *framework.Isolated {
	t.Helper()
	l := framework.NewIsolated(t)
	kubeconfig, _ := l.TokenKubeconfig(t, l.Token(t, nil))
	certificate, key := framework.NewAuthority(t, "serving-ca").Sign(t, "daemon", time.Now().AddDate(1, 0, 0)).Files(t)
	return l.Start(t, kubeconfig, append([]string{"--controllers=status-aggregator", "--tls-cert-file=" + certificate, "--tls-private-key-file=" + key}, flags...)...)
}

// probe continuously probes the replica, each time as a new client, like the kubelet, and
// checks each answer. The returned function stops it, and returns the number of answers and
// the longest time to an answer.
func probe(l *framework.Isolated) (end func() (answered int, slowest time.Duration)) {
	l.T.Helper()
	return probePage(l, "/healthz")
}

// probePage is probe for one of the probe pages.
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
