// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutate changes one critical line of a package at a time, runs the package's
// own tests, and lists the changes that no test noticed. It does not change the working tree.
//
// A package is compiled once, with all its mutants in it; an environment variable of the
// test process selects one. Mutants negate conditions, swap comparisons and && with ||,
// change the numbers that are compared with, remove calls, assignments and early returns,
// and return nil for an error. What does not compile does not count; a test that runs into
// its timeout has noticed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
)

const (
	killed   = "killed"
	survived = "SURVIVED"
	invalid  = "does not compile"
)

type options struct {
	accepted string
	sample   int // per package; 0: all
	seed     uint64
	parallel int
	run      string
}

func main() {
	var o options
	flag.StringVar(&o.accepted, "accepted", "hack/mutate/accepted.txt", "The `file` of accepted survivors.")
	flag.IntVar(&o.sample, "n", 0, "How many mutants of each package to run, chosen at random; 0: all.")
	flag.Uint64Var(&o.seed, "seed", 1, "The seed of that choice.")
	flag.IntVar(&o.parallel, "p", 2, "How many mutants to run at a time.")
	flag.StringVar(&o.run, "only", "", "Run only mutants whose `file:line function change` matches this regular expression.")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Usage: mutate [flags] DIRECTORY|DIRECTORY/... ...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || o.parallel < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mutate(ctx, o, flag.Args(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// mutate reports on all packages that the arguments name. A package whose tests fail
// without a mutant is an error.
func mutate(ctx context.Context, o options, args []string, out, progress io.Writer) error {
	accepted, err := readAccepted(o.accepted)
	if err != nil {
		return err
	}
	packages, err := list(ctx, args)
	if err != nil {
		return err
	}
	var mutants []mutant
	var errs []error
	for _, p := range packages {
		ran, err := p.run(ctx, o, progress)
		mutants = append(mutants, ran...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.shown, err))
		}
	}
	report(out, mutants, accepted)
	return errors.Join(errs...)
}

func report(out io.Writer, mutants []mutant, accepted []*acceptance) {
	slices.SortStableFunc(mutants, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	byKey := map[string]*acceptance{}
	for _, a := range accepted {
		byKey[a.key()] = a
	}
	counts := map[string]int{}
	known := 0
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range mutants {
		counts[m.result]++
		a := byKey[m.key()]
		if a != nil {
			a.found, a.killed = true, m.result == killed
		}
		switch {
		case m.result != survived:
		case a != nil:
			known++
		default:
			fmt.Fprintf(table, "%s:%d\t%s\t%s\t%s\n", m.file, m.line, m.function, m.change, m.result)
		}
	}
	table.Flush()
	scanned := map[string]bool{}
	for _, m := range mutants {
		scanned[m.file] = true
	}
	for _, a := range accepted {
		switch {
		case scanned[a.file] && !a.found:
			fmt.Fprintf(out, "Stale in the accepted survivors: %s %s: there is no %q\n", a.file, a.function, a.change)
		case a.killed:
			fmt.Fprintf(out, "Stale in the accepted survivors: %s %s: a test notices %q\n", a.file, a.function, a.change)
		}
	}
	run := counts[killed] + counts[survived]
	fmt.Fprintf(out, "%d mutants, %d run: %d killed, %d survived (%d of them accepted); %d did not compile\n",
		len(mutants)-counts[invalid], run, counts[killed], counts[survived], known, counts[invalid])
}
