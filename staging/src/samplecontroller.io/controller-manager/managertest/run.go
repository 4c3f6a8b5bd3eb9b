// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managertest tests the controllers of a [manager.Program] end to end: from the change
// of a user to the requests that the API server gets. The program is the real one, with its
// informers, loops, leader election and gate. Only the API server is in memory.
//
//	managertest.Run(t, program, func(t *testing.T, e *managertest.Env) {
//		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}})
//		e.Settle()
//		if got, want := e.Writes(), []string{"create secrets ns/team"}; !slices.Equal(got, want) {
//			t.Errorf("writes %q, want %q", got, want)
//		}
//	})
//
// [Run] runs the test in a bubble of testing/synctest, where waiting takes no time, so tests
// need no sleeps. [RunOn] runs the same test on a real API server.
//
// Time stands still in a bubble while a goroutine waits for a network connection, also for one of
// net/http/httptest. So a program that calls another API gets its http.RoundTripper from the test:
//
//	type vault struct{ deleted []string }
//
//	func (v *vault) RoundTrip(r *http.Request) (*http.Response, error) {
//		v.deleted = append(v.deleted, r.URL.Path)
//		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
//	}
//
// A test that hangs for this reason ends after 20 s with the lines that use the network.
//
// A test fails if a controller sends a request that neither its Rules nor its declarations allow, such
// as Owns, unless it has none of both, or if a constructor fails. It fails if a controller has declared the
// scope of a kind wrongly. It also fails if the program does not end with the test or, in a bubble, if any
// goroutine does not.
package managertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/fakeapi"
	"samplecontroller.io/controller-manager/internal/testkit"
	"samplecontroller.io/controller-manager/manager"
)

// running is locked while a program runs, because a process can run one at a time.
var running sync.Mutex

// Run runs the program in a bubble, and calls body when the program leads. Then it stops the
// program. The API server is in memory and serves the kinds of Kubernetes and of
// Program.Scheme. args are flags of the program, such as --controllers=quota-controller.
//
// The API server sets the defaults of Pods and of the kinds of workloads, for example, but does not
// validate objects, except custom resources whose CRDs the test installs with [Env.InstallCRDs]. No
// other controllers run, so garbage is collected only by [Env.CollectGarbage], and Deployments have no
// Pods. A request that the API server does not support, such as server-side apply, fails the test.
func Run(t *testing.T, p manager.Program, body func(*testing.T, *Env), args ...string) {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	dog := newWatchdog(patience, func(why string) { panic(t.Name() + ": " + why) })
	defer dog.stop()
	synctest.Test(t, func(t *testing.T) {
		scheme := schemeOf(t, p)
		api := fakeapi.New(scheme)
		e := newEnv(t, scheme, &restclient.Config{Host: "http://api.test"}, dog.watch(api))
		e.wait, e.collect, e.serve = synctest.Wait, api.CollectGarbage, api.Serve
		e.run(t, p, body, args)
	})
}

// RunOn is like [Run], but on the API server of config and in real time. It creates the
// namespaces of the objects that the test creates, and deletes those objects after the test.
// The user of config must be allowed everything. The requests of the controllers are checked
// against their Rules.
func RunOn(t *testing.T, config *restclient.Config, p manager.Program, body func(*testing.T, *Env), args ...string) {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	transport, err := restclient.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, schemeOf(t, p), &restclient.Config{Host: host.String()}, transport)
	e.real = true
	defer e.deleteCreated()
	e.run(t, p, body, args)
}

// schemeOf returns a scheme with the kinds of Kubernetes and of the program.
func schemeOf(t testing.TB, p manager.Program) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	err := kubescheme.AddToScheme(scheme)
	if p.Scheme != nil {
		err = errors.Join(err, p.Scheme(scheme))
	}
	if err != nil {
		t.Fatalf("adding the kinds of %s to a scheme: %v", p.Name, err)
	}
	return scheme
}

// newEnv returns the environment of a program whose clients use transport. It starts nothing.
func newEnv(t testing.TB, scheme *runtime.Scheme, config *restclient.Config, transport http.RoundTripper) *Env {
	t.Helper()
	config.Transport, config.QPS, config.ContentType = transport, -1, "application/json"
	user, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{
		t: t, scheme: scheme, user: user, ended: make(chan struct{}),
		wait: func() {}, collect: func() {}, serve: func(schema.GroupVersionKind, schema.GroupVersionResource) {},
		resources: map[schema.GroupVersionKind]schema.GroupVersionResource{},
	}
	e.recorder = newRecorder(t, transport)
	e.config = restclient.CopyConfig(config)
	e.config.Transport = e.recorder
	return e
}

// run calls body while the program runs and leads.
func (e *Env) run(t *testing.T, p manager.Program, body func(*testing.T, *Env), args []string) {
	e.t.Helper()
	e.start(p, args)
	defer e.stop()
	e.Lead()
	body(t, e)
}

// start starts the program with the given flags.
func (e *Env) start(p manager.Program, args []string) {
	e.t.Helper()
	p.Controllers = append([]controller.Descriptor{}, p.Controllers...)
	for i, d := range p.Controllers {
		p.Controllers[i].New = e.watched(d)
	}
	e.lease = p.Name
	if e.real { // another test may use the API server
		e.lease += "-" + utilrand.String(5)
	}
	args = append([]string{"--kube-api-content-type=application/json", "--secure-port=0",
		"--leader-elect-resource-namespace=" + leaseNamespace, "--leader-elect-resource-name=" + e.lease}, args...)
	logger := ktesting.NewLogger(e.t, ktesting.NewConfig(ktesting.Verbosity(2), ktesting.BufferLogs(true)))
	if sink, ok := logger.GetSink().(ktesting.Underlier); ok {
		e.logged = func() string { return sink.GetBuffer().String() }
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logger))
	run, enabled, err := testkit.Configure(ctx, p, e.config, args)
	if err != nil {
		e.t.Fatal(err)
	}
	e.stopProgram, e.recorder.enabled = stop, enabled
	go func() {
		defer close(e.ended)
		e.err = run(ctx)
	}()
}

// watched returns a constructor that also adds the controller to the environment.
func (e *Env) watched(d controller.Descriptor) controller.Constructor {
	if d.New == nil {
		return nil // the program rejects it
	}
	return func(ctx context.Context, c *controller.Context) (built controller.Controller, err error) {
		defer func() {
			if value := recover(); value != nil {
				e.unbuilt.Store(ptr.To(fmt.Sprintf("the constructor of %s panicked: %v\n%s", c.Name(), value, debug.Stack())))
				panic(value)
			}
			if err != nil {
				e.unbuilt.Store(ptr.To(fmt.Sprintf("the constructor of %s failed: %v", c.Name(), err)))
			}
		}()
		built, err = d.New(ctx, c)
		e.recorder.allow(d.Name, append(slices.Clip(d.Rules), c.Rules()...))
		e.mutex.Lock()
		defer e.mutex.Unlock()
		e.context = c
		e.contexts = append(e.contexts, c)
		e.learn(c.Informers())
		e.controllers = append(e.controllers, built)
		return built, err
	}
}

// stop stops the program. In a bubble, synctest fails the test if a goroutine remains.
func (e *Env) stop() {
	e.t.Helper()
	e.stopProgram()
	<-e.ended
	e.wait() // for the log line of the last Event
	if e.err != nil {
		e.t.Errorf("the program ended with an error: %v", e.err)
	} else if why := e.unbuilt.Load(); why != nil {
		e.t.Errorf("%s", *why)
	}
	for _, c := range e.contexts {
		if err := c.Mistake(); err != nil {
			e.t.Errorf("%s is Degraded: %v", c.Name(), err)
		}
	}
}
