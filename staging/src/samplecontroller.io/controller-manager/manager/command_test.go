// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/version"
)

// program returns a program with two controllers made by newController. bar-controller is off
// by default.
func program(newController func(name string, c *controller.Context) (controller.Controller, error)) Program {
	descriptor := func(name string, off bool) controller.Descriptor {
		var size int
		return controller.Descriptor{
			Name: name + "-controller", Aliases: []string{name}, Workers: 1, DisabledByDefault: off,
			New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
				return newController(name+"-controller", c)
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
	return Program{Name: "test-manager", Port: 10443, Controllers: []controller.Descriptor{descriptor("foo", false),
		descriptor("bar", true)}}
}

// kubeconfig returns the path of a kubeconfig for an API server that is never called.
func kubeconfig(t *testing.T) string {
	t.Helper()
	return writeKubeconfig(t, "https://api.test:6443")
}

// writeKubeconfig returns the path of a kubeconfig for the API server at this address. The
// command, if any, is a credential plugin.
func writeKubeconfig(t *testing.T, server string, command ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {}},
		CurrentContext: "test",
	}
	if len(command) > 0 {
		config.AuthInfos["test"].Exec = &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: command[0], Args: command[1:], InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// flushSeldom prevents a race between klog's flushing in one command and the start of the
// next.
const flushSeldom = "--log-flush-frequency=1h"

// execute runs a program whose last controller fails to build. It returns the controllers that
// were made before, and the output of the command.
func execute(t *testing.T, args ...string) (built []string, output string, err error) {
	t.Helper()
	p := program(func(name string, _ *controller.Context) (controller.Controller, error) {
		built = append(built, name)
		return &fake{name: name}, nil
	})
	p.Controllers = append(p.Controllers, controller.Descriptor{Name: "z-controller", Workers: 1,
		New: func(context.Context, *controller.Context) (controller.Controller, error) {
			return nil, nil // a mistake, which ends the program
		}})
	command := newCommand(p, p.options())
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"--secure-port=0", flushSeldom}, args...))
	err = command.ExecuteContext(t.Context())
	return built, out.String(), err
}

func TestCommandMakesEnabledControllers(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"by default": {nil, []string{"foo-controller"}},
		"selected":   {[]string{"--controllers=*,bar"}, []string{"bar-controller", "foo-controller"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			built, _, err := execute(t, append(tc.args, "--kubeconfig="+kubeconfig(t))...)
			if !errors.Is(err, errLogged) {
				t.Errorf("the command: %v, want the error of z-controller, which is logged", err)
			}
			if diff := cmp.Diff(tc.want, built); diff != "" {
				t.Errorf("made controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string // in the error
	}{
		"misspelled command":  {[]string{"preflght"}, []string{`unknown command "preflght"; did you mean preflight?`}},
		"positional argument": {[]string{"foo"}, []string{`unknown command "foo"; flags begin with two dashes`}},
		"unknown flag":        {[]string{"--kubecfg=x"}, []string{"--kubecfg"}},
		"not a number":        {[]string{"--secure-port=abc"}, []string{`"--secure-port" flag: "abc" is not a whole number; see test-manager --help`}},
		"negative level":      {[]string{"--v=-1"}, []string{`"-v, --v" flag: "-1" is not a whole number from 0; see`}},
		"too large":           {[]string{"--kube-api-qps=1e400"}, []string{`"--kube-api-qps" flag: "1e400" is out of range; see`}},
		"number in a list":    {[]string{"--tls-curve-preferences=29,3x"}, []string{`"--tls-curve-preferences" flag: "3x" is not a whole number; see`}},
		"neither on nor off":  {[]string{"--leader-elect=maybe"}, []string{`"--leader-elect" flag: "maybe" is not true or false; see`}},
		"value of a gate":     {[]string{"--feature-gates=AllAlpha=x"}, []string{`"--feature-gates" flag: invalid value of AllAlpha=x, err: "x" is not true or false; see`}},
		"no unit":             {[]string{"--sync-timeout=5"}, []string{`"--sync-timeout" flag: missing unit in duration "5": want a number and a unit, for example 30s or 2m; see`}},
		"no subcommand":       {[]string{"preflight", "--secure-port=abc"}, []string{`"abc" is not a whole number; see test-manager preflight --help`}},
		"unknown controller":  {[]string{"--controllers=fop"}, []string{`--controllers: "fop" is not a known controller (known: `}},
		"missing kubeconfig":  {[]string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig: ", "/does/not/exist"}},
		"other protocol":      {[]string{"--master=ftp://a"}, []string{`--master: "ftp://a": must begin with https://`}},
		"several sections":    {[]string{"--controllers=-foo", "--leader-elect-retry-period=0", "--secure-port=-1", "--bar-size=-1"}, []string{"--controllers: ", "--bar-size: -1 is negative", "--leader-elect-retry-period: ", "--secure-port"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			built, output, err := execute(t, tc.args...)
			if err == nil || built != nil {
				t.Fatalf("the command: %v, want an invalid flag", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the command: %q, want it to contain %q", err, want)
				}
			}
			if strings.Contains(output, "Usage") {
				t.Errorf("the usage hides the error:\n%s", output)
			}
		})
	}
}

func TestVersionIsThatOfTheProgram(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"preflight", "--version"}} {
		p := program(made)
		command := newCommand(p, p.options())
		defer command.Flags().Lookup("version").Value.Set("false") // it is global
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetArgs(args)
		if err := command.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "test-manager v") ||
			strings.Contains(out.String(), "Format") {
			t.Errorf("%q prints %q, %v, want the name and version of the program", args, out.String(), err)
		}
	}
}

func TestHelp(t *testing.T) {
	_, output, err := execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"test-manager [flags]", "Commands:\n  controllers  List the controllers that", "\n  preflight    Check that the program would run", "\n  version      Print the version.", "All controllers: bar-controller, foo-controller", "Disabled-by-default controllers: bar-controller",
		"Generic flags:", "Secure serving flags:", "Metrics flags:", "--concurrent-bar-syncs", "Foo-controller flags:\n", "--foo-size int", "--leader-elect-resource-name", `(default "test-manager")`, "(default 10443)",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the help lacks %q:\n%s", want, output)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	p := program(nil)
	command := newCommand(p, p.options())
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"version"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "test-manager "+version.Get().String()+"\n"; got != want {
		t.Errorf("version: %q, want %q", got, want)
	}
}

func TestCommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var s history
	p := program(func(name string, _ *controller.Context) (controller.Controller, error) {
		return &fake{name: name, history: &s, run: func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return nil
		}}, nil
	})
	if code := Execute(ctx, p, []string{"--leader-elect=false", "--secure-port=0", "--kubeconfig=" + kubeconfig(t), flushSeldom}); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if diff := cmp.Diff([]string{"foo-controller begins", "foo-controller ends"}, s.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}
