// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench runs the daemon and comparable programs under the same loads, one after
// another on the same API server, and prints a table that compares them. README.md explains
// the measurements and the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// warmUp is how many Foos the first candidate syncs first, because a new API server is slower.
const warmUp = 100

// options are the command-line options.
type options struct {
	loads       []load
	candidates  []candidate // empty: the defaults of each load
	n           int         // 0: the default of the load
	rounds      int
	giveUpAfter time.Duration
}

func main() {
	// The signal only cancels the current trial, so that the cluster is stopped in order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-binaries-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(os.Stderr, "Building the candidates")
	if err := build(ctx, root, dir); err != nil {
		return err
	}
	for _, l := range o.loads {
		report, err := o.bench(ctx, l, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		fmt.Printf("\n%s\n", report)
	}
	return nil
}

func parse(args []string) (*options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	o := &options{}
	loadNames := flags.String("load", "all", "The loads, separated by commas, or all.")
	names := flags.String("candidates", "", "The candidates, separated by commas. Ratios are relative to the first. (default: the load's candidates)")
	flags.IntVar(&o.n, "n", 0, "The number of Foos. (default: the load's number)")
	flags.IntVar(&o.rounds, "rounds", 5, "How often each candidate runs under each load.")
	flags.DurationVar(&o.giveUpAfter, "give-up-after", 2*time.Minute, "How long each step of a trial may take.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var loadsErr, namesErr, err error
	o.loads, loadsErr = choose("load", loads, func(l load) string { return l.name }, *loadNames)
	if *names != "" {
		o.candidates, namesErr = chooseCandidates(*names)
	}
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected arguments %q: use flags", flags.Args())
	}
	if o.n < 0 || o.rounds < 1 || o.giveUpAfter <= 0 {
		err = errors.Join(err, errors.New("invalid flags: -n must not be negative, -rounds and -give-up-after must be positive"))
	}
	return o, errors.Join(loadsErr, namesErr, err)
}

// choose returns the named elements, or all if names is "all".
func choose[T any](what string, all []T, nameOf func(T) string, names string) ([]T, error) {
	if names == "all" {
		return all, nil
	}
	byName, known := map[string]T{}, []string{}
	for _, one := range all {
		byName[nameOf(one)], known = one, append(known, nameOf(one))
	}
	var chosen []T
	for name := range strings.SplitSeq(names, ",") {
		one, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("unknown %s %q: must be one of %s", what, name, strings.Join(known, ", "))
		}
		chosen = append(chosen, one)
	}
	return chosen, nil
}

// bench runs all rounds of a load.
func (o *options) bench(ctx context.Context, l load, binaries string) (r *report, err error) {
	r = &report{load: l, n: o.n, rounds: o.rounds, candidates: o.candidates}
	if r.n == 0 {
		r.n = l.n
	}
	if r.candidates == nil {
		if r.candidates, err = chooseCandidates(l.candidates); err != nil {
			return nil, err
		}
	}
	for round := range o.rounds {
		if err := o.round(ctx, r, round, binaries); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// round runs one round on a new API server. The order of the candidates rotates from round to
// round, so that drift over time cancels out.
func (o *options) round(ctx context.Context, r *report, round int, binaries string) (err error) {
	h, err := o.startHarness(ctx, binaries)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	if _, err := h.try(ctx, r.candidates[0], creation, warmUp); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	for i := range r.candidates {
		c, began := r.candidates[(round+i)%len(r.candidates)], time.Now()
		result, err := h.try(ctx, c, r.load, r.n)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		result.candidate = c.name
		r.results = append(r.results, result)
		fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s took %.0f s\n", r.load.name, round+1, o.rounds, c.name, time.Since(began).Seconds())
	}
	return nil
}
