// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// ask sends a request of a host for a path through a handler, and returns what it was
// answered and how long that took.
func ask(handler http.Handler, host, path string) (*httptest.ResponseRecorder, time.Duration) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.RemoteAddr = host + ":1234"
	answer := httptest.NewRecorder()
	began := time.Now()
	handler.ServeHTTP(answer, request)
	return answer, time.Since(began)
}

func TestWhoAsksTooOftenWaitsAndIsThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int32
		handler := withTurns(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }), perHost())
		for i := range burstPerHost + ratePerHost {
			answer, took := ask(handler, "10.0.0.1", "/metrics")
			if answer.Code != http.StatusOK {
				t.Fatalf("request %d is answered with %d", i, answer.Code)
			}
			if want := time.Second / ratePerHost; i >= burstPerHost && took.Round(time.Millisecond) != want {
				t.Errorf("request %d took %v, want %v", i, took, want)
			}
		}
		// Who asks on while others wait is refused, but not at once.
		waiting := ratePerHost * int(maxDelay/time.Second)
		for range waiting + 1 {
			go ask(handler, "10.0.0.1", "/metrics")
		}
		synctest.Wait()
		answer, took := ask(handler, "10.0.0.1", "/metrics")
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" || took != maxDelay {
			t.Errorf("one request too many: %d after %v, Retry-After %q, want 429 after %v", answer.Code, took, answer.Header().Get("Retry-After"), maxDelay)
		}
		time.Sleep(time.Minute)
		if want := burstPerHost + ratePerHost + waiting; int(served.Load()) != want {
			t.Errorf("%d requests were served, want %d", served.Load(), want)
		}
	})
}

func TestHostsDoNotWaitForEachOtherAndProbesForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := withTurns(http.NotFoundHandler(), perHost())
		for range burstPerHost {
			ask(handler, "10.0.0.1", "/metrics")
		}
		for _, free := range []struct{ host, path string }{
			{"10.0.0.2", "/metrics"}, {"10.0.0.1", "/healthz"}, {"10.0.0.1", "/livez/ping"}, {"10.0.0.1", "/readyz"},
		} {
			if answer, took := ask(handler, free.host, free.path); answer.Code != http.StatusNotFound || took != 0 {
				t.Errorf("%s of %s: %d after %v, want it at once", free.path, free.host, answer.Code, took)
			}
		}
		for _, path := range []string{"/metrics", "/healthzz", "/"} {
			if _, took := ask(handler, "10.0.0.1", path); took == 0 {
				t.Errorf("%s was answered at once, want it to wait", path)
			}
		}
	})
}

func TestARequestThatIsGivenUpWhileItWaitsIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(1, 1)
		handler := withTurns(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") }),
			func(*http.Request) *rate.Limiter { return limiter })
		limiter.Allow()
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		handler.ServeHTTP(httptest.NewRecorder(), request.WithContext(ctx))
		time.Sleep(time.Second)
		if !limiter.Allow() {
			t.Error("its turn was not given back")
		}
	})
}

// deadlines are those that were set on a response.
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

func TestOnlyProfilesTakeLonger(t *testing.T) {
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

func TestCallersGetAQuarterOfTheFiles(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 3: 1, 256: 64, 1024: 256, 4000: 1000, 1 << 20: 1000, math.MaxUint64: 1000} {
		if got := connectionLimit(files); got != want {
			t.Errorf("connectionLimit(%d) = %d, want %d", files, got, want)
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 400, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	if got := newConfig(t).SecureServing.Listener.(*crowd).most; got != 100 {
		t.Errorf("a process that may open 400 files accepts %d connections, want 100", got)
	}
}

func TestTheOldestConnectionGoesForANewOne(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(listener, 2)
	defer c.Close()
	// connect returns both ends of a new connection.
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", c.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		if server, err = c.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return client, server
	}
	// passes says whether what the server sends arrives.
	passes := func(client, server net.Conn) bool {
		t.Helper()
		if _, err := server.Write([]byte("x")); err != nil {
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the client reads %v, want that the connection has ended", err)
			}
			return false
		}
		_, err := io.ReadFull(client, make([]byte, 1))
		return err == nil
	}
	firstClient, first := connect()
	secondClient, second := connect()
	thirdClient, third := connect()
	if passes(firstClient, first) || !passes(secondClient, second) || !passes(thirdClient, third) {
		t.Error("of three connections the first should have gone alone")
	}
	third.Close() // who leaves makes room
	third.Close()
	fourthClient, fourth := connect()
	if !passes(secondClient, second) || !passes(fourthClient, fourth) {
		t.Error("a connection went although one had ended by itself")
	}
}
