// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/fakeapi"
)

// TestRealNetworkIsReported has a controller that calls a server which never answers.
func TestRealNetworkIsReported(t *testing.T) {
	expectHang(t, func(listener net.Listener, t *testing.T, e *Env) {
		e.Create(configMap("1"))
		e.Settle()
	}, "give the program an http.RoundTripper", "watchdog_test.go:", "net/http.(*persistConn).readLoop")
}

// TestRealServerIsReported starts a server in the test, which nothing calls.
func TestRealServerIsReported(t *testing.T) {
	expectHang(t, func(listener net.Listener, t *testing.T, e *Env) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		e.Settle()
	}, "give the program an http.RoundTripper", "net.(*TCPListener).Accept")
}

// expectHang runs a test that hangs until it is reported. The controller calls the listener, if there is
// an object.
func expectHang(t *testing.T, body func(net.Listener, *testing.T, *Env), want ...string) {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan string, 2)
	dog := newWatchdog(2*time.Second, func(why string) {
		reports <- why
		listener.Close() // which ends the wait
		silent.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			configMaps := controller.For[*corev1.ConfigMap](c)
			return configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error {
				response, err := client.Get("http://" + silent.Addr().String())
				if err == nil {
					response.Body.Close()
				}
				return nil
			})
		})
		scheme := schemeOf(t, p)
		e := newEnv(t, scheme, &rest.Config{Host: "http://api.test"}, dog.watch(fakeapi.New(scheme)))
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) { body(listener, t, e) }, nil)
	})
	dog.stop()
	if len(reports) != 1 {
		t.Fatalf("%d reports, want one", len(reports))
	}
	report := <-reports
	for _, text := range want {
		if !strings.Contains(report, text) {
			t.Errorf("the report is %s, want %q in it", report, text)
		}
	}
}

func TestNetworkUses(t *testing.T) {
	const stacks = `goroutine 7 [select (durable), synctest bubble 1]:
net/http.(*persistConn).roundTrip(0x1)
	net/http/transport.go:2900 +0x1
net/http.(*Client).Get(...)
	net/http/client.go:400
k8s.io/client-go/rest.(*Request).Do(0x1)
	k8s.io/client-go/rest/request.go:10 +0x1
example.com/ops.(*vault).Delete(0x1)
	example.com/ops/vault.go:12 +0x1
example.com/ops.main()
	example.com/ops/main.go:1 +0x1

goroutine 8 [IO wait, synctest bubble 1]:
internal/poll.runtime_pollWait(0x1)
	runtime/netpoll.go:351 +0x1
net.(*conn).Read(0x1)
	net/net.go:196 +0x1
main.listen()
	main.go:5 +0x1
created by example.com/ops.start in goroutine 7
	example.com/ops/start.go:3 +0x1

goroutine 9 [IO wait]:
net.(*conn).Read(0x1)
	net/net.go:196 +0x1
example.com/ops.outside()
	example.com/ops/outside.go:3 +0x1`
	expect(t, "places", networkUses(stacks), "example.com/ops/vault.go:12", "main.go:5")
}

func TestOutsideWaits(t *testing.T) {
	const (
		other   = "goroutine 1 [IO wait]:\nmain.other()"
		durable = "goroutine 2 [select (durable), 3 minutes, synctest bubble 1]:\nmain.durable()"
		root    = "goroutine 3 [synctest.Wait, synctest bubble 1]:\nmain.root()"
		network = "goroutine 4 [IO wait, 2 minutes, synctest bubble 1]:\nmain.network()"
		working = "goroutine 5 [runnable, synctest bubble 1]:\nmain.working()"
	)
	for name, test := range map[string]struct{ stacks, want []string }{
		"network": {[]string{other, durable, root, network}, []string{network}},
		"idle":    {[]string{other, durable, root}, nil},
		"working": {[]string{other, network, working}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "waiting goroutines", outsideWaits(strings.Join(test.stacks, "\n\n")), test.want...)
		})
	}
}

// TestNoLogAfterTest has a program that records an Event when it ends.
func TestNoLogAfterTest(t *testing.T) {
	defer klog.CaptureState().Restore()
	var mutex sync.Mutex
	var log bytes.Buffer
	klog.SetLogger(funcr.New(func(prefix, args string) {
		mutex.Lock()
		defer mutex.Unlock()
		log.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{}))
	t.Run("program", func(t *testing.T) { Run(t, program(rules), func(*testing.T, *Env) {}) })
	time.Sleep(10 * time.Millisecond) // what is late is still logged
	mutex.Lock()
	defer mutex.Unlock()
	if strings.Contains(log.String(), "leaked goroutine") {
		t.Errorf("logged after the end of the test: %s", log.String())
	}
}
