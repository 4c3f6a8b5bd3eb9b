// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command binaries builds the programs of a control plane that are not cached yet, and reports
// progress. With arguments, it builds the named programs instead and prints their paths. Tests
// would build the programs as well, but could not show progress.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

func main() {
	minors := flag.Bool("minors", false, "Print the minor versions that the environment variable KUBERNETES can select, and build nothing.")
	flag.Parse()
	if err := run(*minors, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(minors bool, names []string) error {
	if minors {
		all, err := cluster.Minors()
		fmt.Println(strings.Join(all, " "))
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	paths, err := cluster.Binaries(ctx, os.Stderr, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(paths[name])
	}
	return nil
}
