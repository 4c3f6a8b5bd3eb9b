// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"samplecontroller.io/controller-manager/internal/longwrite"
)

// api is a RoundTripper that stands for the API server.
type api struct {
	requests []*http.Request
	answers  []*sent // the response bodies
	delay    time.Duration
}

func (a *api) RoundTrip(request *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, request)
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case <-time.After(a.delay):
	}
	answer := &sent{Reader: strings.NewReader("done")}
	a.answers = append(a.answers, answer)
	return &http.Response{StatusCode: http.StatusOK, Body: answer}, nil
}

// sent is a body that records whether it was closed.
type sent struct {
	io.Reader
	closed bool
}

func (s *sent) Close() error {
	s.closed = true
	return nil
}

// do sends a request through the gate and reads the response.
func do(t *testing.T, through http.RoundTripper, method, url string) error {
	t.Helper()
	return doWith(t, t.Context(), through, method, url)
}

// doWith is like do with a context.
func doWith(t *testing.T, ctx context.Context, through http.RoundTripper, method, url string) error {
	t.Helper()
	body := &sent{Reader: strings.NewReader("{}")}
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		if errors.Is(err, ErrNotLeading) && !body.closed {
			t.Errorf("the body of a refused %s was not closed", method)
		}
		return err
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("reading the response: %v", err)
	}
	if got := request.URL.String(); got != url {
		t.Errorf("the client's request was changed: its URL is %s, was %s", got, url)
	}
	return response.Body.Close()
}

const foos = "https://api.test/apis/foos"

var (
	reads  = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	writes = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
)

func TestGateLetsOnlyLeaderWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(writeTimeout)
		server := &api{}
		through := gate.Wrap(server)
		check := func(when string, passes bool) {
			t.Helper()
			for _, method := range reads {
				if err := do(t, through, method, foos); err != nil {
					t.Errorf("%s %s: %v", method, when, err)
				}
			}
			for _, method := range writes {
				if err := do(t, through, method, foos); (err == nil) != passes || err != nil && !errors.Is(err, ErrNotLeading) {
					t.Errorf("%s %s: %v", method, when, err)
				}
			}
		}
		check("before the first term", false)

		ctx, stop := context.WithCancel(t.Context())
		term := newTerm(ctx, validity)
		term.renewed(time.Now())
		gate.admit(term)
		check("during a term", true)
		stop()
		check("while its work drains", true)
		term.over()
		check("after the term", false)

		term = newTerm(t.Context(), validity)
		term.renewed(time.Now())
		gate.admit(term)
		check("during another term", true)
		term.lose(errGone)
		check("after it was lost", false)

		term = newTerm(t.Context(), validity)
		term.renewed(time.Now())
		gate.admit(term)
		time.Sleep(validity)
		check("after it has expired", false)
	})
}

// client-go's executors and kubectl open a WebSocket with GET.
func TestOnlyLeaderExecutesCommands(t *testing.T) {
	for url, write := range map[string]bool{
		"https://api/api/v1/namespaces/ns/pods/db/exec?command=promote": true,
		"https://api/api/v1/namespaces/ns/pods/db/attach":               true,
		"https://api/api/v1/namespaces/ns/pods/db/portforward":          true,
		"https://api/api/v1/namespaces/ns/pods/db/log":                  false,
		"https://api/api/v1/namespaces/ns/pods/exec":                    false, // a Pod of that name
		"https://api/api/v1/namespaces/pods/configmaps/exec":            false,
	} {
		err := do(t, NewGate(writeTimeout).Wrap(&api{}), http.MethodGet, url)
		if (err != nil) != write || write && !errors.Is(err, ErrNotLeading) {
			t.Errorf("GET %s by a process that does not lead: %v, want refused: %t", url, err, write)
		}
	}
	request, err := http.NewRequest(http.MethodGet, "https://api/api/v1/namespaces/ns/services/db/proxy/shell", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Upgrade", "websocket")
	if _, err := NewGate(writeTimeout).Wrap(&api{}).RoundTrip(request); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a WebSocket is opened by a process that does not lead: %v", err)
	}
}

func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &api{delay: time.Hour}
		gate := NewGate(writeTimeout)
		term := newTerm(t.Context(), 0)
		defer term.over()
		gate.admit(term)
		for _, method := range writes {
			began := time.Now()
			err := do(t, gate.Wrap(server), method, foos)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, longwrite.ErrTimeout) ||
				took != writeTimeout {
				t.Errorf("%s: %v after %v, want it given up after %v", method, err, took, writeTimeout)
			}
		}
		for _, method := range reads {
			if err := do(t, gate.Wrap(server), method, foos); err != nil {
				t.Errorf("%s: %v, want no timeout", method, err)
			}
		}
	})
}

func TestWriteTimeoutIsSentToAPIServer(t *testing.T) {
	server := &api{}
	gate := NewGate(writeTimeout)
	term := newTerm(t.Context(), 0)
	defer term.over()
	gate.admit(term)
	for _, url := range []string{foos, foos + "?fieldManager=foo", foos + "?timeout=1s", foos + "?timeout=30s"} {
		if err := do(t, gate.Wrap(server), http.MethodPatch, url); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"timeout=3s", "fieldManager=foo&timeout=3s", "timeout=1s", "timeout=3s"}
	for i, request := range server.requests {
		if request.Context().Err() == nil {
			t.Error("closing the response does not release the context of the write")
		}
		if got := request.URL.RawQuery; got != want[i] {
			t.Errorf("the query is %q, want %q", got, want[i])
		}
	}
}

// An open response holds its connection.
func TestGateClosesResponseBody(t *testing.T) {
	server := &api{}
	gate := NewGate(writeTimeout)
	term := newTerm(t.Context(), 0)
	defer term.over()
	gate.admit(term)
	for _, method := range writes {
		if err := do(t, gate.Wrap(server), method, foos); err != nil {
			t.Fatal(err)
		}
	}
	for i, answer := range server.answers {
		if !answer.closed {
			t.Errorf("closing the response to %s left the body of the transport open", writes[i])
		}
	}
}

// The timer must not outlive the write.
func TestFailedWriteReleasesItsContext(t *testing.T) {
	gate := NewGate(writeTimeout)
	term := newTerm(t.Context(), 0)
	defer term.over()
	gate.admit(term)
	var sent context.Context
	err := do(t, gate.Wrap(roundTripper(func(request *http.Request) (*http.Response, error) {
		sent = request.Context()
		return nil, errUnreachable
	})), http.MethodPut, foos)
	if !errors.Is(err, errUnreachable) || errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, errUnreachable)
	}
	if sent.Err() == nil {
		t.Error("the context of the write is still active after the failure")
	}
}

func TestLostLeaseCancelsWriteInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(writeTimeout)
		term := newTerm(t.Context(), validity)
		term.renewed(time.Now())
		gate.admit(term)
		failed := make(chan error)
		go func() { failed <- do(t, gate.Wrap(&api{delay: time.Hour}), http.MethodPut, foos) }()
		synctest.Wait()
		began := time.Now()
		term.lose(errGone)
		if err := <-failed; !errors.Is(err, ErrLost) || errors.Is(err, ErrNotLeading) || time.Since(began) > 0 {
			t.Errorf("the write ended after %v with %v, want at once with %v", time.Since(began), err, ErrLost)
		}
	})
}

func TestGateIsOpenOnlyDuringTerms(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		gate := NewGate(writeTimeout)
		through := gate.Wrap(&api{})
		a := newCandidate(t, server, "a", func(c *Config) { c.Gate = gate })
		var inTerm, draining error
		a.run(func(term *Term) error {
			inTerm = do(t, through, http.MethodPut, foos)
			<-term.Ctx.Done()
			draining = do(t, through, http.MethodPut, foos)
			return nil
		})
		a.end(t)
		if inTerm != nil || draining != nil {
			t.Errorf("a write in the term: %v, while draining: %v", inTerm, draining)
		}
		if err := do(t, through, http.MethodPut, foos); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a write afterwards: %v, want %v", err, ErrNotLeading)
		}
	})
}

func BenchmarkGate(b *testing.B) {
	gate := NewGate(writeTimeout)
	term := newTerm(b.Context(), validity)
	defer term.over()
	term.renewed(time.Now())
	gate.admit(term)
	next := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, nil })
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, foos, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for name, through := range map[string]http.RoundTripper{"without": next, "with": gate.Wrap(next)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				response, err := through.RoundTrip(request)
				if err != nil {
					b.Fatal(err)
				}
				response.Body.Close()
				term.renewed(time.Now())
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
