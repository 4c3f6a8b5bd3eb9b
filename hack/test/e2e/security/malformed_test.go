// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const (
	// resetConnections is how many connections reset their requests concurrently.
	resetConnections = 10
	// closedWithin is how soon the server must end a connection that misbehaves: after a minute at
	// most, but a busy machine may take longer to open them all.
	closedWithin = 5 * time.Minute
)

// TestFaultMalformedRequests exceeds the limits of the server, which must reject that. The daemon continues, and its
// shutdown shows that nothing is left over.
func TestFaultMalformedRequests(t *testing.T) {
	t.Parallel()
	l := startServing(t)
	address := strings.TrimPrefix(l.URL, "https://")
	probes := probe(l)

	t.Run("headers", func(t *testing.T) { wantHeadersRefused(t, l) })
	// After one response to a client without a token, the server ends an HTTP/2 connection.
	token := hpack.HeaderField{Name: "authorization", Value: "Bearer " + l.Token(t, nil)}
	var answered, most int
	t.Run("rapid reset", func(t *testing.T) { answered = wantResetsRefused(t, address, token) })
	t.Run("streams", func(t *testing.T) { most = wantStreamsRefused(t, address, token) })

	n, slowest := probes()
	if log := l.Log.String(); strings.Contains(log, "panic") {
		t.Error("the log has a panic")
	}
	l.WaitRenewal(time.Now())
	l.Stop() // orderly: no leftover connection delays the shutdown
	framework.ReportFault(t, framework.FaultRow{
		ID: "D12", Fault: "malformed requests: large headers, rapid reset, too many streams over HTTP/1.1 and HTTP/2",
		Ours: fmt.Sprintf("all rejected, no panic; the server began to answer %d reset requests before it ended the connections; %d concurrent streams; %d probes answered during the test, the slowest in %d ms",
			answered, most, n, slowest.Milliseconds()),
		Peer: "none: Go's server, configured as in Kubernetes",
	})
}

// wantHeadersRefused sends headers of more than 1 MiB.
func wantHeadersRefused(t *testing.T, l *framework.Isolated) {
	t.Helper()
	for _, protocol := range []string{"http/1.1", http2.NextProtoTLS} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: protocol == http2.NextProtoTLS}
		for size, want := range map[int]int{1 << 19: http.StatusOK, 1<<20 + 1<<16: http.StatusRequestHeaderFieldsTooLarge} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range size >> 12 { // no single field is too large
				request.Header.Set(fmt.Sprintf("X-Large-%d", i), strings.Repeat("x", 1<<12-40))
			}
			response, err := transport.RoundTrip(request)
			if err != nil && want != http.StatusOK && protocol == http2.NextProtoTLS {
				continue // the server may end the connection instead
			}
			if err != nil {
				t.Errorf("%s: a header of %d bytes: %v, want a response", protocol, size, err)
				continue
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s: a header of %d bytes: status %d, want %d", protocol, size, response.StatusCode, want)
			}
		}
		transport.CloseIdleConnections()
	}
}

// client2 is the client end of an HTTP/2 connection, and can send any frame.
type client2 struct {
	*http2.Framer
	connection *tls.Conn
}

func dial2(t *testing.T, address string, settings ...http2.Setting) *client2 {
	t.Helper()
	connection, err := dialTLS(address, http2.NextProtoTLS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(closedWithin))
	c := &client2{http2.NewFramer(connection, connection), connection}
	c.AllowIllegalWrites, c.AllowIllegalReads = true, true
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// get requests a probe on a stream.
func (c *client2) get(stream uint32, fields ...hpack.HeaderField) error {
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream,
		BlockFragment: headerBlock(http.MethodGet, "/healthz", fields...), EndStream: true, EndHeaders: true})
}

// wantResetsRefused makes requests and resets each at once, on several connections
// (CVE-2023-44487), half of them with a token, until the server ends the connection. It
// returns how many requests the server began to answer.
func wantResetsRefused(t *testing.T, address string, token hpack.HeaderField) (answered int) {
	t.Helper()
	counts := make([]int, resetConnections)
	refused := make([]bool, resetConnections)
	var clients sync.WaitGroup
	for i := range resetConnections {
		c := dial2(t, address)
		fields := []hpack.HeaderField{token}[:i%2]
		clients.Go(func() {
			for n := uint32(1); c.get(n, fields...) == nil && c.WriteRSTStream(n, http2.ErrCodeCancel) == nil; n += 2 {
			} // until the connection is closed
		})
		clients.Go(func() {
			for {
				frame, err := c.ReadFrame()
				if err != nil {
					timeout, ok := err.(net.Error)
					refused[i] = refused[i] || !ok || !timeout.Timeout()
					return
				}
				switch frame := frame.(type) {
				case *http2.HeadersFrame:
					counts[i]++
				case *http2.GoAwayFrame:
					refused[i] = refused[i] || frame.ErrCode == http2.ErrCodeEnhanceYourCalm
				}
			}
		})
	}
	clients.Wait()
	for i := range resetConnections {
		answered += counts[i]
		if !refused[i] {
			t.Errorf("the server did not end connection %d", i)
		}
	}
	return answered
}

// wantStreamsRefused opens more concurrent streams than the server allows, and lets no
// response be sent. It returns the server's limit.
func wantStreamsRefused(t *testing.T, address string, token hpack.HeaderField) (most int) {
	t.Helper()
	c := dial2(t, address, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	frame, err := c.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the first frame is %v, want settings", frame.Header())
	}
	value, ok := settings.Value(http2.SettingMaxConcurrentStreams)
	if !ok || value > 100 {
		t.Fatalf("the server allows %d concurrent streams, want at most 100", value)
	}
	for n := range value + 1 {
		if err := c.get(2*n+1, token); err != nil {
			t.Fatal(err)
		}
	}
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("one stream too many: %v, want %v", err, http2.ErrCodeRefusedStream)
		}
		if reset, ok := frame.(*http2.RSTStreamFrame); ok {
			if reset.ErrCode != http2.ErrCodeRefusedStream {
				t.Errorf("one stream too many: %v, want %v", reset.ErrCode, http2.ErrCodeRefusedStream)
			}
			return int(value)
		}
	}
}
