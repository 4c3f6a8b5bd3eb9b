// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	componentversion "k8s.io/component-base/version"

	"samplecontroller.io/controller-manager/controller"
)

// controllers returns a registry of two controllers.
func controllers() *controller.Registry {
	descriptor := func(name string, workers int, off bool) controller.Descriptor {
		return controller.Descriptor{Name: name, Workers: workers, DisabledByDefault: off,
			New: func(context.Context, *controller.Context) (controller.Controller, error) { return nil, nil }}
	}
	return controller.NewRegistry(descriptor("bar-controller", 3, true), descriptor("foo-controller", 5, false))
}

// parse returns the options for the arguments.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := New("test-manager", 10261, controllers())
	fs := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDefaultsAreValid(t *testing.T) {
	o := parse(t)
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Client.Connection.QPS != -1 || !o.LeaderElection.LeaderElect || o.Server.SecureServing.BindPort != 10261 {
		t.Errorf("unexpected defaults: %+v %+v", o.Client, o.LeaderElection)
	}
	if got := o.Workers.Of("foo-controller"); got != 5 {
		t.Errorf("foo-controller has %d workers by default, want its descriptor's", got)
	}
}

func TestInvalidFlagErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"selection":              {[]string{"--controllers=bad"}, `--controllers: "bad" is not a known controller`},
		"paused controller":      {[]string{"--paused-controllers=bad"}, `--paused-controllers: "bad" is not a known controller`},
		"end of a pause":         {[]string{"--paused-controllers=foo-controller=2h"}, `--paused-controllers: "2h" is not a time: write for example foo-controller=2026-01-02T15:04:05Z`},
		"paused twice":           {[]string{"--paused-controllers=foo-controller,foo-controller=2026-01-02T15:04:05Z"}, "--paused-controllers: foo-controller is named twice"},
		"several namespaces":     {[]string{"--namespace=a,b"}, `--namespace: "a,b" is more than one namespace: use one, or leave it empty for all`},
		"all namespaces":         {[]string{"--namespace=*"}, "--namespace: * is not supported"},
		"invalid namespace":      {[]string{"--namespace=Team_A"}, `--namespace: "Team_A" is not a valid namespace name: a lowercase RFC 1123 label must`},
		"shutdown timeout":       {[]string{"--controller-shutdown-timeout=-1s"}, "--controller-shutdown-timeout: -1s"},
		"qps":                    {[]string{"--kube-api-qps=0"}, "--kube-api-qps: 0 must be positive, or -1 for no limit"},
		"negative qps":           {[]string{"--kube-api-qps=-3"}, "--kube-api-qps: -3 must be positive, or -1 for no limit"},
		"qps is not a number":    {[]string{"--kube-api-qps=NaN"}, "--kube-api-qps: NaN must be positive"},
		"infinite qps":           {[]string{"--kube-api-qps=+Inf"}, "--kube-api-qps: +Inf must be positive"},
		"burst":                  {[]string{"--kube-api-qps=5", "--kube-api-burst=0"}, "--kube-api-burst: 0 is too small"},
		"content type":           {[]string{"--kube-api-content-type=text/plain"}, `--kube-api-content-type: "text/plain" is not supported`},
		"sync timeout":           {[]string{"--sync-timeout=0"}, "--sync-timeout: 0s is too short, must be at least 1s"},
		"negative write timeout": {[]string{"--write-timeout=-1s"}, "--write-timeout: -1s is too short, must be at least 100ms"},
		"write timeout":          {[]string{"--write-timeout=10ms"}, "--write-timeout: 10ms is too short, must be at least 100ms"},
		"deletions":              {[]string{"--max-deletions-per-minute=-1"}, "--max-deletions-per-minute: -1 must not be negative"},
		"workers":                {[]string{"--concurrent-foo-syncs=0"}, "--concurrent-foo-syncs: 0 is too few"},
		"lease in fractions":     {[]string{"--leader-elect-lease-duration=15500ms"}, "--leader-elect-lease-duration: 15.5s must be whole seconds"},
		"renew beyond the lease": {[]string{"--leader-elect-renew-deadline=15s"}, "--leader-elect-renew-deadline: 15s must be shorter than --leader-elect-lease-duration (15s)"},
		"renew within a retry":   {[]string{"--leader-elect-retry-period=5s", "--leader-elect-renew-deadline=6s"}, "--leader-elect-renew-deadline: 6s must be longer than 6s"},
		"other lock":             {[]string{"--leader-elect-resource-lock=configmaps"}, `--leader-elect-resource-lock: "configmaps" is not supported`},
		"no lease name":          {[]string{"--leader-elect-resource-name="}, "--leader-elect-resource-name: must not be empty"},
		"log format":             {[]string{"--logging-format=xml"}, `--logging-format: Invalid value: "xml"`},
		"port":                   {[]string{"--secure-port=70000"}, "--secure-port 70000 must be between"},
	} {
		t.Run(name, func(t *testing.T) {
			err := parse(t, test.args...).Validate()
			var invalid InvalidFlags
			if !errors.As(err, &invalid) || len(invalid) != 1 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one invalid flag with %q", err, test.want)
			}
		})
	}
}

func TestInvalidFlagsAreReportedTogether(t *testing.T) {
	err := parse(t, "--controllers=bad", "--write-timeout=0", "--concurrent-bar-syncs=-1").Validate()
	want := `invalid flags (3):
  --controllers: "bad" is not a known controller (known: bar-controller, foo-controller)
  --write-timeout: 0s is too short, must be at least 100ms
  --concurrent-bar-syncs: -1 is too few, must be at least 1; to disable the controller use --controllers=*,-bar-controller`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant %s", err, want)
	}
}

func TestLeaseFlagsIgnoredWithoutLeaderElection(t *testing.T) {
	if err := parse(t, "--leader-elect=false", "--leader-elect-lease-duration=0").Validate(); err != nil {
		t.Error(err)
	}
}

func TestFlagsSetOptions(t *testing.T) {
	o := parse(t, "--concurrent-foo-syncs=3", "--leader-elect-lease-duration=30s", "--kube-api-qps=7")
	if o.Workers.Of("foo-controller") != 3 || o.LeaderElection.LeaseDuration.Duration != 30*time.Second ||
		o.Client.Connection.QPS != 7 {
		t.Errorf("flags did not reach the options: %+v", o)
	}
	if flags := o.Flags(); o.Flags() != flags {
		t.Error("Flags() returns new flag sets at each call, so /flagz would not show the parsed flags")
	}
}

func TestAPIServerFeatureGatesKeepDefaults(t *testing.T) {
	// A binary stamped with version v0.1 does this.
	stamped := version.MustParse("0.1")
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(stamped); err != nil {
		t.Fatal(err)
	}
	New("test-manager", 10261, controllers())
	if !utilfeature.DefaultFeatureGate.Enabled(features.UnauthenticatedHTTP2DOSMitigation) {
		t.Error("UnauthenticatedHTTP2DOSMitigation is off")
	}
}

// TestVersionFromGit in hack/test/e2e/lifecycle shows what --version prints.
func TestStatuszShowsProgramVersion(t *testing.T) {
	before := componentversion.Get().GitVersion
	defer func() {
		if err := componentversion.SetDynamicVersion(before); err != nil {
			t.Error(err)
		}
	}()
	const stamped = "v0.0.0-alpha.7+ccf3d7bd29e7c0"
	if err := componentversion.SetDynamicVersion(stamped); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: "https://127.0.0.1:1"}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test"}},
		CurrentContext: "test",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	o := parse(t, "--kubeconfig="+kubeconfig, "--authentication-skip-lookup", "--feature-gates=ComponentStatusz=true")
	o.Server.SecureServing.Listener = listener
	config, err := o.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.Serving.Version.BinaryVersion().String(), strings.TrimPrefix(stamped, "v"); got != want {
		t.Errorf("/statusz shows version %q, want %q", got, want)
	}
}

// TestDeprecatedFlagsHaveNoEffect checks that a command line with flags of an older version is
// accepted, with a warning that says when they are removed.
func TestDeprecatedFlagsHaveNoEffect(t *testing.T) {
	for _, name := range []string{"min-resync-period", "controller-start-interval"} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var warning strings.Builder
		fs.SetOutput(&warning)
		fs.AddFlagSet(New("test-manager", 10261, controllers()).Flags().FlagSet("generic"))
		if err := fs.Parse([]string{"--" + name + "=-12h"}); err != nil {
			t.Errorf("--%s: %v", name, err)
		}
		want := "Flag --" + name + " has been deprecated, it has no effect, and is removed in v0.4.0: "
		if !strings.HasPrefix(warning.String(), want) {
			t.Errorf("warning %q, want %q", warning.String(), want)
		}
	}
}
