// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"
)

func TestInvalidConfig(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string // substring of the error; empty for none
	}{
		"valid":                          {func(*Config) {}, ""},
		"no name":                        {func(c *Config) { c.Name = "" }, `lease is "" in namespace "default"`},
		"no namespace":                   {func(c *Config) { c.Namespace = "" }, `lease is "lease" in namespace ""`},
		"no client":                      {func(c *Config) { c.Client = nil }, "client for the lease is missing"},
		"no identity":                    {func(c *Config) { c.Identity = "" }, "identity"},
		"no lease duration":              {func(c *Config) { c.LeaseDuration = 0 }, "lease duration: 0s must be whole seconds"},
		"negative lease duration":        {func(c *Config) { c.LeaseDuration = -time.Second }, "lease duration: -1s must be"},
		"lease duration below a second":  {func(c *Config) { c.LeaseDuration = 900 * time.Millisecond }, "lease duration: 900ms must be"},
		"lease duration with a fraction": {func(c *Config) { c.LeaseDuration = 15500 * time.Millisecond }, "lease duration: 15.5s must be"},
		"lease duration above the limit": {func(c *Config) { c.LeaseDuration = 301 * time.Second }, "lease duration: 5m1s must be at most 5m0s"},
		"longest lease duration":         {func(c *Config) { c.LeaseDuration = 5 * time.Minute }, ""},
		"renew deadline too long":        {func(c *Config) { c.RenewDeadline = c.LeaseDuration }, "renew deadline: 15s must be shorter than lease duration (15s)"},
		"retry period too long":          {func(c *Config) { c.RetryPeriod = c.RenewDeadline }, "renew deadline: 10s must be longer than 12s"},
		"retry period, with its jitter":  {func(c *Config) { c.RenewDeadline = c.RetryPeriod * 12 / 10 }, "renew deadline: 2.4s must be longer than 2.4s"},
		"no retry period":                {func(c *Config) { c.RetryPeriod = 0 }, "retry period: 0s is too short"},
		"no renew deadline":              {func(c *Config) { c.RenewDeadline = 0 }, "renew deadline: 0s must be longer than 2.4s"},
		"shortest durations": {func(c *Config) {
			c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = time.Second, 900*time.Millisecond, 300*time.Millisecond
		}, ""},
		"no time left to write": {func(c *Config) { c.Gate = NewGate(10 * time.Second) },
			"write timeout: 10s is too long for lease duration 15s: after a renewal a leader writes for 15s - 10s - margin 1s = 4s, must be longer than 4s, twice retry period (2s)"},
		"just enough time to write": {func(c *Config) { c.Gate = NewGate(10*time.Second - 1) }, ""},
		"own recorder":              {func(c *Config) { c.Recorder = &events{} }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := Config{
				Namespace: "default", Name: "lease", Identity: "a", Client: &client{},
				LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
			}
			tc.change(&config)
			election, err := New(config)
			if (err == nil) != (tc.want == "") || (election == nil) != (err != nil) {
				t.Fatalf("New = %v, %v", election, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: %q, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestInvalidOptionsNameFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"defaults":                        {nil, nil},
		"lease duration":                  {[]string{"--leader-elect-lease-duration=15500ms"}, []string{"--leader-elect-lease-duration: 15.5s must be whole seconds, at least 1s: a Lease stores no fractions"}},
		"lease duration, above the limit": {[]string{"--leader-elect-lease-duration=27h"}, []string{"--leader-elect-lease-duration: 27h0m0s must be at most 5m0s: after a crash nobody leads for that long"}},
		"renew deadline too long":         {[]string{"--leader-elect-renew-deadline=15s"}, []string{"--leader-elect-renew-deadline: 15s must be shorter than --leader-elect-lease-duration (15s)"}},
		"renew deadline too short":        {[]string{"--leader-elect-renew-deadline=2400ms"}, []string{"--leader-elect-renew-deadline: 2.4s must be longer than 2.4s, which is 1.2 times --leader-elect-retry-period (2s)"}},
		"write timeout too long": {[]string{"--write-timeout=12s"}, []string{
			"--write-timeout: 12s is too long for --leader-elect-lease-duration 15s: after a renewal a leader writes for 15s - 12s - margin 1s = 2s, must be longer than 4s, twice --leader-elect-retry-period (2s)",
		}},
		"write timeout too short, also without election": {[]string{"--leader-elect=false", "--write-timeout=99ms"}, []string{
			"--write-timeout: 99ms is too short, must be at least 100ms",
		}},
		"retry period": {[]string{"--leader-elect-retry-period=0"}, []string{"--leader-elect-retry-period: 0s is too short, must be at least 1ms"}},
		"lock":         {[]string{"--leader-elect-resource-lock=endpoints"}, []string{`--leader-elect-resource-lock: "endpoints" is not supported, must be leases`}},
		"name and namespace": {[]string{"--leader-elect-resource-name=", "--leader-elect-resource-namespace="}, []string{
			"--leader-elect-resource-name: must not be empty", "--leader-elect-resource-namespace: must not be empty",
		}},
		"no election": {[]string{"--leader-elect=false", "--leader-elect-lease-duration=0", "--leader-elect-resource-name="}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range parse(t, tc.args...).Validate() {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

// parse returns the options of a program of that name with the given flags.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions("program")
	flags := pflag.NewFlagSet("program", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidOptionsCreateElection(t *testing.T) {
	for _, args := range [][]string{nil, {"--leader-elect-lease-duration=1s", "--leader-elect-renew-deadline=900ms", "--leader-elect-retry-period=200ms", "--write-timeout=300ms"}} {
		o := parse(t, args...)
		if errs := o.Validate(); len(errs) > 0 {
			t.Fatalf("Validate of %q: %v", args, errs)
		}
		election, err := o.Election(&restclient.Config{Host: "https://localhost"}, nil, nil, nil, nil)
		if err != nil || election == nil {
			t.Errorf("Election with %q = %v, %v", args, election, err)
		}
	}
}

func TestElectionIsOptional(t *testing.T) {
	election, err := parse(t, "--leader-elect=false").Election(&restclient.Config{}, nil, nil, nil, nil)
	if election != nil || err != nil {
		t.Errorf("Election = %v, %v, want nil and no error", election, err)
	}
}

func TestIdentitiesOnOneHostDiffer(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	identities := map[string]bool{}
	for range 2 {
		election, err := parse(t).Election(&restclient.Config{Host: "https://localhost"}, nil, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		identity := election.config.Identity
		if !strings.HasPrefix(identity, hostname+"_") {
			t.Errorf("identity is %q, want the prefix %q, the hostname", identity, hostname)
		}
		identities[identity] = true
	}
	if len(identities) != 2 {
		t.Errorf("identities are %v, want two", identities)
	}
}

func TestElectionCopiesRESTConfig(t *testing.T) {
	config := &restclient.Config{Host: "https://localhost", QPS: 7, Timeout: time.Hour, UserAgent: "program/leader-election"}
	before := restclient.CopyConfig(config)
	if _, err := parse(t).Election(config, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if config.QPS != before.QPS || config.Timeout != before.Timeout || config.UserAgent != before.UserAgent {
		t.Errorf("configuration is %v, was %v", config, before)
	}
}

// A renewal must not wait behind the work on a shared HTTP/2 connection.
func TestElectionHasOwnConnection(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"lease"}}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := &restclient.Config{Host: server.URL, TLSClientConfig: restclient.TLSClientConfig{Insecure: true}}
	work, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	election, err := parse(t).Election(config, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []coordinationv1client.LeasesGetter{work, election.config.Client, work,
		election.config.Client} {
		if _, err := client.Leases("default").Get(t.Context(), "lease", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := connections.Load(); got != 2 {
		t.Errorf("%d connections, want one of the work and one of the election", got)
	}
	for _, client := range []coordinationv1client.LeasesGetter{work, election.config.Client} {
		rest := client.(*coordinationv1client.CoordinationV1Client).RESTClient().(*restclient.RESTClient)
		utilnet.CloseIdleConnectionsFor(rest.Client.Transport)
	}
}
