// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
)

// registry has two controllers, one of them off by default.
func registry() *controller.Registry[*story] {
	descriptor := func(name string, off bool) controller.Descriptor[*story] {
		var size int
		return controller.Descriptor[*story]{
			Name: name + "-controller", Aliases: []string{name}, Workers: 1, DisabledByDefault: off,
			New: func(_ context.Context, s *story) (controller.Controller, error) {
				return &fake{name: name + "-controller", story: s}, nil
			},
			Flags: func(fs *pflag.FlagSet) { fs.IntVar(&size, name+"-size", 1, "The size of a "+name+".") },
			Validate: func() []error {
				if size < 0 {
					return []error{fmt.Errorf("--%s-size: %d is negative", name, size)}
				}
				return nil
			},
		}
	}
	return controller.NewRegistry(descriptor("foo", false), descriptor("bar", true))
}

// kubeconfig returns the path of a kubeconfig for an API server that nobody calls.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: "https://api.test:6443"}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test"}},
		CurrentContext: "test",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// flushSeldom keeps klog's flushing of one command from racing with the start of the next.
const flushSeldom = "--log-flush-frequency=1h"

var errBuilt = errors.New("built")

// execute runs a command with the given arguments whose build only tells what it
// was given, and returns that with the error.
func execute(t *testing.T, args ...string) (configs Configs, enabled []string, output string, err error) {
	t.Helper()
	command := NewCommand(NewOptions("test-manager", 10443, registry()),
		func(_ context.Context, c Configs, names []string) (*informers.Handle, []controller.Controller, error) {
			configs, enabled = c, names
			return nil, nil, errBuilt
		})
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append(args, flushSeldom))
	err = command.ExecuteContext(t.Context())
	return configs, enabled, out.String(), err
}

func TestBuildIsGivenTheAPIServerAndTheEnabledControllers(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"by default": {nil, []string{"foo-controller"}},
		"selected":   {[]string{"--controllers=*,bar"}, []string{"bar-controller", "foo-controller"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			configs, enabled, _, err := execute(t, append(tc.args, "--kubeconfig="+kubeconfig(t))...)
			if !errors.Is(err, errBuilt) {
				t.Fatalf("the command: %v, want it to get as far as build", err)
			}
			for _, config := range []*restclient.Config{configs.Informers, configs.Controllers} {
				if config.Host != "https://api.test:6443" {
					t.Errorf("the API server is %s, want that of the kubeconfig", config.Host)
				}
			}
			if diff := cmp.Diff(tc.want, enabled); diff != "" {
				t.Errorf("enabled (-want +got):\n%s", diff)
			}
		})
	}
}

// The API server asks every request to come again later, which client-go does ten times.
func TestRequestsOfControllersEndAfterTheWriteTimeout(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	o := NewOptions("test-manager", 0, registry())
	o.LeaderElection.WriteTimeout = 100 * time.Millisecond
	configs := o.configs(&restclient.Config{Host: server.URL}, o.LeaderElection.Gate(nil))
	if got := configs.Informers.Timeout; got != 0 {
		t.Errorf("requests of informers end after %v, want never: they watch", got)
	}
	client, err := kubernetes.NewForConfig(configs.Controllers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("Get: no error, want one after --write-timeout")
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("%d requests, want 1: the next would be too late", got)
	}
}

func TestMistakesAreReportedBeforeAnythingIsBuilt(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string // in the error
	}{
		"an argument":              {[]string{"foo"}, []string{`"foo"`}},
		"an unknown flag":          {[]string{"--kubecfg=x"}, []string{"--kubecfg"}},
		"an unknown controller":    {[]string{"--controllers=fop"}, []string{`--controllers: "fop" is not a known controller, did you mean "foo"?`}},
		"no such kubeconfig":       {[]string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig: ", "/does/not/exist"}},
		"several, of all sections": {[]string{"--controllers=-foo", "--leader-elect-retry-period=0", "--secure-port=-1", "--bar-size=-1"}, []string{"--controllers: ", "--bar-size: -1 is negative", "--leader-elect-retry-period: ", "--secure-port"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, output, err := execute(t, tc.args...)
			if err == nil || errors.Is(err, errBuilt) {
				t.Fatalf("the command: %v, want a mistake", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the command: %q, want it to contain %q", err, want)
				}
			}
			if strings.Contains(output, "Usage") {
				t.Errorf("the usage hides the mistake:\n%s", output)
			}
		})
	}
}

func TestHelpShowsTheControllersAndTheSections(t *testing.T) {
	_, _, output, err := execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"test-manager [flags]", "All controllers: bar-controller, foo-controller", "Disabled-by-default controllers: bar-controller",
		"Generic flags:", "Leader election flags:", "Secure serving flags:", "Foo-controller flags:\n", "--foo-size int", "--leader-elect-resource-name", `(default "test-manager")`, "(default 10443)",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the help lacks %q:\n%s", want, output)
		}
	}
}

func TestASignalEndsTheCommandInOrder(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			var s story
			begun := make(chan struct{})
			command := NewCommand(NewOptions("test-manager", 0, registry()),
				func(context.Context, Configs, []string) (*informers.Handle, []controller.Controller, error) {
					return informers.NewHandle(), []controller.Controller{&fake{name: "foo-controller", story: &s, run: func(ctx context.Context) error {
						close(begun)
						<-ctx.Done()
						return nil
					}}}, nil
				})
			command.SetArgs([]string{"--leader-elect=false", "--kubeconfig=" + kubeconfig(t), flushSeldom})
			done := make(chan error, 1)
			go func() { done <- command.ExecuteContext(context.Background()) }()
			<-begun
			if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("the command: %v", err)
			}
			if diff := cmp.Diff([]string{"foo-controller begins", "foo-controller ends"}, s.told()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}
