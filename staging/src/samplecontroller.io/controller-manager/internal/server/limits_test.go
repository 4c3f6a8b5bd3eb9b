// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// TestMaxInFlight reaches the limit with requests that hang.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := permissive()
		ended := make(chan struct{})
		config.Pages = map[string]http.Handler{"/slow": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended })}
		handler := Handler(config)
		get := func(path string) *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			return answer
		}
		var slow sync.WaitGroup
		for range maxInFlight {
			slow.Go(func() { get("/slow") })
		}
		synctest.Wait()
		for path, want := range map[string]int{
			"/metrics": http.StatusTooManyRequests, "/debug/pprof/": http.StatusTooManyRequests,
			"/healthz": http.StatusOK, "/livez/ping": http.StatusOK, "/readyz/informer-sync": http.StatusInternalServerError,
		} {
			answer := get(path)
			if answer.Code != want {
				t.Errorf("%s at the limit: %d, want %d", path, answer.Code, want)
			}
			if want == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
				t.Errorf("%s at the limit: no Retry-After", path)
			}
		}
		close(ended)
		slow.Wait()
		if answer := get("/metrics"); answer.Code != http.StatusOK {
			t.Errorf("/metrics below the limit: %d, want %d", answer.Code, http.StatusOK)
		}
	})
}

// TestUnauthorizedRequestsAreNotInFlight sends as many requests as the limit, whose
// authentication hangs.
func TestUnauthorizedRequestsAreNotInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := permissive()
		ended := make(chan struct{})
		admin := config.Authentication.Authenticator
		config.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool,
			error) {
			if r.Header.Get("Authorization") != "" {
				<-ended
				return nil, false, nil
			}
			return admin.AuthenticateRequest(r)
		})
		handler := Handler(config)
		var callers sync.WaitGroup
		for range maxInFlight {
			callers.Go(func() {
				request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				request.Header.Set("Authorization", "Bearer bad")
				handler.ServeHTTP(httptest.NewRecorder(), request)
			})
		}
		synctest.Wait()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if answer.Code != http.StatusOK {
			t.Errorf("an authorized caller: %d, want %d", answer.Code, http.StatusOK)
		}
		close(ended)
		callers.Wait()
	})
}

// deadlines records the deadlines set on a response.
type deadlines struct {
	http.ResponseWriter
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = append(d.read, at)
	return nil
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, at)
	return nil
}

func TestTimeLimitExceptForProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := Handler(Config{})
		until := []time.Time{time.Now().Add(requestTimeout)}
		for path, want := range map[string][]time.Time{
			"/metrics": until, "/healthz": until, "/debug/pprof": until, "/unknown": until,
			"/debug/pprof/profile": append(until, time.Time{}),
		} {
			d := &deadlines{ResponseWriter: httptest.NewRecorder()}
			handler.ServeHTTP(d, httptest.NewRequest(http.MethodGet, path, nil))
			if !slices.Equal(d.read, want) || !slices.Equal(d.write, want) {
				t.Errorf("%s: deadlines %v to read and %v to write, want %v", path, d.read, d.write, want)
			}
		}
	})
}

func TestConnectionLimitIsQuarterOfFileLimit(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 3: 1, 256: 64, 1024: 256, 4000: 1000, 1 << 20: 1000,
		math.MaxUint64: 1000} {
		if got := connectionLimit(files); got != want {
			t.Errorf("connectionLimit(%d) = %d, want %d", files, got, want)
		}
	}
}

func TestNewConnectionClosesOldest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newConnectionLimiter(listener, 2)
	defer l.Close()
	var clients []net.Conn
	for range 3 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		clients = append(clients, client)
	}
	if err := clients[0].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := clients[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest of three connections: %v, want it to be closed", err)
	}
	for i, client := range clients[1:] {
		if err := client.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d of three: %v, want it to be open", i+2, err)
		}
	}
}

func TestIdleConnectionsDoNotDelayProbes(t *testing.T) {
	config := newConfig(t)
	config.SecureServing.Listener = newConnectionLimiter(config.SecureServing.Listener.(*connectionLimiter).Listener, 2)
	server := start(t, config)
	for range 3 {
		idle, err := net.Dial("tcp", config.SecureServing.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		begun := time.Now()
		if code, _ := server.get("/livez", ""); code != http.StatusOK {
			t.Errorf("/livez: %d, want %d", code, http.StatusOK)
		}
		if took := time.Since(begun); took > 30*time.Second { // then idle connections are closed anyway
			t.Errorf("/livez took %v", took)
		}
	}
}
