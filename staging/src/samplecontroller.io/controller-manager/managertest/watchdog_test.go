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

func TestRealNetworkIsReported(t *testing.T) {
	running.Lock()
	defer running.Unlock()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reports []string
	dog := newWatchdog(2*time.Second, func(why string) {
		reports = append(reports, why)
		listener.Close() // which ends the wait
	})
	synctest.Test(t, func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Listener.Close()
		server.Listener = listener
		p := syncing(func(c *controller.Context) (controller.Controller, error) {
			return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
		})
		scheme := schemeOf(t, p)
		e := newEnv(t, scheme, &rest.Config{Host: "http://api.test"}, dog.watch(fakeapi.New(scheme)))
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			server.Start()
			e.Create(configMap("1"))
			e.Settle()
		}, nil)
	})
	dog.stop()
	if len(reports) != 1 || !strings.Contains(reports[0], "give the program an http.RoundTripper") || !strings.Contains(reports[0], "net.(*TCPListener).Accept") {
		t.Errorf("reports %q, want one with the stack of the listener", reports)
	}
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
