// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command run implements `make run`. It builds the daemon and the kubectl plugin, runs the
// daemon on a new local cluster or an existing one, applies the example Foo and prints the
// result. It runs until Ctrl-C.
//
// The daemon runs as the ServiceAccount from the manifests, with their RBAC rules, never as an
// admin.
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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

const usage = `Usage: go run ./hack/tools/run [--cluster=KUBECONFIG]

Builds the daemon, starts a local cluster of three Nodes, installs CRDs and RBAC,
runs the daemon and applies the example Foo. Ctrl-C stops everything and leaves
nothing behind.

`

func main() {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	kubeconfig := flags.String("cluster", "", "run on the existing cluster of this admin `KUBECONFIG` instead of a local one;\n"+
		"CRDs, namespace, RBAC and the example stay installed")
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
	// After the first signal, signals have their default effect again: a second one kills this
	// process, and its watchdogs clean up.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, *kubeconfig); err != nil {
		fmt.Fprintf(os.Stderr, "\nerror: %v\n", err)
		os.Exit(1)
	}
}

// run runs the command on the cluster of an admin's kubeconfig or, if that is empty, on a
// local one. Being asked to stop is not an error.
func run(ctx context.Context, out io.Writer, kubeconfig string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	r := &runner{root: root, screen: screen{out: out, start: time.Now()}}
	err = r.up(ctx, kubeconfig)
	if ctx.Err() != nil {
		r.screen.line("Stopping (press Ctrl-C again to kill everything)")
		err = nil
	}
	if stopErr := r.stop(); stopErr != nil {
		return errors.Join(err, stopErr)
	}
	r.farewell()
	return err
}

// screen is the user's terminal.
type screen struct {
	out   io.Writer
	start time.Time
}

// line prints one step, after the time since the start.
func (s screen) line(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// text prints a line without the time.
func (s screen) text(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}
