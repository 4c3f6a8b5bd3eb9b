// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command run is `make run`: it builds the daemon and the kubectl plugin, runs the daemon on a local cluster
// made for it, or on an existing one, applies the example Foo and shows what
// became of it. It stays until Ctrl-C.
//
// The daemon runs as the ServiceAccount and under the RBAC rules that the
// manifests give it, never as an admin.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

const usage = `Usage: go run ./hack/run [--cluster=KUBECONFIG]

Builds the daemon, starts a local cluster of three Nodes, installs CRDs and RBAC,
runs the daemon and applies the example Foo. Ctrl-C ends all and leaves nothing
behind.

`

func main() {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	kubeconfig := flags.String("cluster", "", "use the existing cluster of this admin `KUBECONFIG` instead of a local one;\n"+
		"CRDs, namespace, RBAC and the example stay installed at the end")
	flags.Usage = func() { fmt.Print(usage, flags.FlagUsages()) }
	err := flags.Parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v; see --help\n", err)
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the first signal on, signals have their default effect again: a
	// second one ends this process, whose watchdogs then clear up the hard way.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, *kubeconfig); err != nil {
		fmt.Fprintf(os.Stderr, "\nerror: %v\n", err)
		os.Exit(1)
	}
}

// run does what the command promises, on the cluster of an admin's kubeconfig
// or, if that is empty, on a local one. To be asked to stop is no failure.
func run(ctx context.Context, out io.Writer, kubeconfig string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	r := &runner{root: root, screen: screen{out: out, start: time.Now()}}
	err = r.up(ctx, kubeconfig)
	if err == nil {
		err = r.wait(ctx)
	}
	if ctx.Err() != nil {
		r.screen.line("Stopping; a second Ctrl-C does it the hard way")
		err = nil
	}
	if stopErr := r.stop(); stopErr != nil {
		return errors.Join(err, stopErr)
	}
	r.farewell()
	return err
}

// screen is what the person who runs the command looks at.
type screen struct {
	out   io.Writer
	start time.Time
}

// line prints one step, with the time since the start in front.
func (s screen) line(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// text prints a line without the time.
func (s screen) text(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}
