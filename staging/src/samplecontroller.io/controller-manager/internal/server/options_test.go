// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"samplecontroller.io/controller-manager/internal/version"
)

func TestFlagSections(t *testing.T) {
	var sections cliflag.NamedFlagSets
	NewOptions("test-manager", 10443).AddFlags(&sections)
	if diff := cmp.Diff([]string{"debugging", "secure serving", "authentication", "authorization"}, sections.Order); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	for section, flag := range map[string]string{
		"debugging":      "profiling",
		"secure serving": "secure-port",
		"authentication": "authentication-kubeconfig",
		"authorization":  "authorization-always-allow-paths",
	} {
		if sections.FlagSet(section).Lookup(flag) == nil {
			t.Errorf("section %q lacks --%s", section, flag)
		}
	}
	if got := sections.FlagSet("secure serving").Lookup("secure-port").DefValue; got != "10443" {
		t.Errorf("--secure-port is %s by default, want 10443", got)
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // in the error; empty: none
	}{
		"defaults": {nil, ""},
		"port":     {[]string{"--secure-port=70000"}, "--secure-port 70000 must be between 0 and 65535; with 0, nothing is served"},
		"headers":  {[]string{"--requestheader-username-headers= "}, "requestheader-username-headers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := NewOptions("test-manager", 10443)
			var sections cliflag.NamedFlagSets
			o.AddFlags(&sections)
			flags := pflag.NewFlagSet("test-manager", pflag.ContinueOnError)
			for _, section := range sections.FlagSets {
				flags.AddFlagSet(section)
			}
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			errs := o.Validate()
			if len(errs) > 0 != (tc.want != "") || len(errs) > 0 && !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("Validate: %v, want an error about %q", errs, tc.want)
			}
		})
	}
}

func TestPortZeroDisablesServing(t *testing.T) {
	config, err := NewOptions("test-manager", 0).Config(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if config.SecureServing != nil || config.Authentication != nil || config.Authorization != nil {
		t.Errorf("Config = %v, want nothing to serve", config)
	}
}

func TestFailedConfigFreesPort(t *testing.T) {
	o := newOptions(t)
	address := o.SecureServing.Listener.Addr().String()
	if _, err := o.Config(t.Context(), missing(t)); err == nil || !strings.Contains(err.Error(), "authentication") {
		t.Errorf("Config with a kubeconfig that does not exist: error %v, want one about authentication", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listening on the same port: %v", err)
	}
	listener.Close()
}

func TestDelegationKubeconfigsTakePrecedence(t *testing.T) {
	kubeconfig := startAPIServer(t)
	o := newOptions(t)
	o.Authentication.RemoteKubeConfigFile = kubeconfig
	o.Authorization.RemoteKubeConfigFile = kubeconfig
	config, err := o.Config(t.Context(), missing(t))
	if err != nil {
		t.Fatalf("Config: %v", err)
	}
	server := start(t, config)
	if code, _ := server.get("/metrics", "admin"); code != 200 {
		t.Errorf("/metrics as admin: %d, want 200", code)
	}
}

func TestConfigDoesNotModifyOptions(t *testing.T) {
	o := newOptions(t)
	if _, err := o.Config(t.Context(), startAPIServer(t)); err != nil {
		t.Fatal(err)
	}
	if o.Authentication.RemoteKubeConfigFile != "" || o.Authorization.RemoteKubeConfigFile != "" {
		t.Error("Config wrote the kubeconfig into the options")
	}
}

// Without a cluster only the probes are served.
func TestNoAccessWithoutCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	config, err := newOptions(t).Config(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, config)
	for path, want := range map[string]int{"/healthz": 200, "/livez/ping": 200, "/readyz": 200, "/metrics": 401, "/debug/pprof/": 401} {
		if code, _ := server.get(path, ""); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// The API server is unreachable.
func TestClientCALookupFailure(t *testing.T) {
	kubeconfig := writeKubeconfig(t, "https://127.0.0.1:1")
	for _, tolerate := range []bool{true, false} {
		o := newOptions(t)
		o.Authentication.SkipInClusterLookup = false
		o.Authentication.TolerateInClusterLookupFailure = tolerate
		config, err := o.Config(t.Context(), kubeconfig)
		if (err == nil) != tolerate {
			t.Errorf("with --authentication-tolerate-lookup-failure=%t: error %v", tolerate, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "kube-system/extension-apiserver-authentication") {
				t.Errorf("error %q, want it to name the ConfigMap", err)
			}
			continue
		}
		server := start(t, config)
		for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 401} {
			if code, _ := server.get(path, ""); code != want {
				t.Errorf("%s: %d, want %d", path, code, want)
			}
		}
	}
	if !NewOptions("test-manager", 0).Authentication.TolerateInClusterLookupFailure {
		t.Error("by default the server does not start without the cluster")
	}
}

func TestClientCAsAreUsedOnceReadable(t *testing.T) {
	authority, _, err := cert.GenerateSelfSignedCertKey("authority", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: clientCANamespace, Name: clientCAName},
			Data:       map[string]string{clientCAKey: string(authority)},
		})
		var granted atomic.Bool
		cas := &clientCAs{
			follow: func() (*dynamiccertificates.ConfigMapCAController, error) {
				return dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", clientCANamespace, clientCAName, clientCAKey,
					client)
			},
			read: func(context.Context) error {
				if !granted.Load() {
					return errors.New("forbidden")
				}
				return nil
			},
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		var running sync.WaitGroup
		running.Go(func() { cas.Run(ctx, 1) })
		defer func() { cancel(); running.Wait(); synctest.Wait() }()

		expect := func(when, want string, accepted bool) {
			t.Helper()
			var got string
			for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
				if strings.HasSuffix(entry.Message, "client CA bundle can be read") || strings.HasPrefix(entry.Message, "Accepting") {
					got += entry.Message + "\n"
				}
			}
			if got != want {
				t.Errorf("%s: logged %q, want %q", when, got, want)
			}
			if _, ok := cas.VerifyOptions(); ok != accepted {
				t.Errorf("%s: client certificates are accepted: %t, want %t", when, ok, accepted)
			}
		}
		time.Sleep(time.Hour)
		const none = "Rejecting client certificates until the client CA bundle can be read\n"
		expect("while unreadable", none, false)
		granted.Store(true)
		time.Sleep(time.Minute)
		expect("once readable", none+"Accepting client certificates\n", true)
	})
}

// The API server can tell the requests of the server from those of other programs and clients.
func TestRequestsNameProgramAndPurpose(t *testing.T) {
	handler, agents := reviews(t), make(chan string, 100)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	o := newOptions(t)
	o.Authentication.SkipInClusterLookup = false
	config, err := o.Config(t.Context(), writeKubeconfig(t, api.URL))
	if err != nil {
		t.Fatal(err)
	}
	start(t, config).get("/metrics", "admin")
	missing := sets.New("authentication", "authorization", "client-ca")
	for missing.Len() > 0 {
		agent := <-agents
		purpose := agent[strings.LastIndex(agent, "/")+1:]
		if want := version.UserAgent("test-manager", purpose); agent != want {
			t.Fatalf("user agent %q, want %q", agent, want)
		}
		missing.Delete(purpose)
	}
}
