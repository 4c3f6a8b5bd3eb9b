// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command peers puts the daemon beside others that do the same, on the same API server,
// and prints who wins by which ratio. README.md says how it measures and how to read
// what it prints.
//
//	main.go        what is run, and in which order
//	contestant.go  who takes part
//	load.go        what they have to cope with
//	lab.go         the API server
//	trial.go       one contestant, one load: what is prepared, what is changed
//	measure.go     and what it took
//	calls.go       what the audit log says
//	metric.go      what is compared
//	report.go      the table and the JSON
//	picture.go     the picture
//	profile.go     what a daemon spends it on
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// warmUp is how many Foos the floor is given first: a new API server is slower.
const warmUp = 100

// options are the command line.
type options struct {
	loads       []load
	contestants []contestant
	foos        int // 0: as many as the load says
	rounds      int
	patience    time.Duration
	profile     time.Duration // 0: none
	output      string
}

func main() {
	// The cluster must not outlive it, so the signal only ends what is going on.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.output == "" {
		o.output = filepath.Join(root, "_output", "bench")
	}
	dir, err := os.MkdirTemp("", "bench-binaries-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binaries, err := buildAll(ctx, root, dir)
	if err != nil {
		return err
	}
	for _, c := range o.contestants {
		fmt.Printf("%-18s %s\n", c.name, c.about)
	}
	for _, l := range o.loads {
		report, err := o.bench(ctx, l, binaries)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		report.summarise()
		paths, err := report.write(o.output)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s", report)
		for _, path := range paths {
			fmt.Println(path)
		}
	}
	return nil
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	loadNames := flags.String("load", "all", "the loads, separated by commas, or all")
	names := flags.String("contestants", "daemon,twin,sample-controller,floor", "who takes part; the others are held against the first")
	foos := flags.Int("n", 0, "the number of Foos; 0: as many as are usual for the load")
	rounds := flags.Int("rounds", 5, "how often each contestant meets each load")
	patience := flags.Duration("patience", 2*time.Minute, "when a contestant is given up")
	profile := flags.Duration("profile", 0, "write profiles of the daemon: of its CPU for so long, of its memory at the end; it then takes a little more of both")
	output := flags.String("output", "", "the directory for JSON and pictures (default _output/bench of the repository)")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := options{foos: *foos, rounds: *rounds, patience: *patience, profile: *profile, output: *output}
	var loadsErr, namesErr error
	o.loads, loadsErr = chooseLoads(*loadNames)
	o.contestants, namesErr = choose(*names)
	err := errors.Join(loadsErr, namesErr)
	if flags.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("there are no arguments but flags: remove %q", flags.Args()))
	}
	if o.foos < 0 || o.rounds < 1 || o.patience <= 0 {
		err = errors.Join(err, errors.New("-n must not be negative, -rounds and -patience must be more than 0"))
	}
	return o, err
}

// buildAll builds all contestants, of which the floor is always needed.
func buildAll(ctx context.Context, root, dir string) (map[string]string, error) {
	fmt.Fprintln(os.Stderr, "building the contestants")
	binaries := map[string]string{}
	for _, c := range contestants {
		path, err := c.build(ctx, root, dir)
		if err != nil {
			return nil, err
		}
		binaries[c.name] = path
	}
	return binaries, nil
}

// bench has all contestants meet a load in each round, in another order each time, so
// that what gets slower or faster with time cancels out.
func (o options) bench(ctx context.Context, l load, binaries map[string]string) (*report, error) {
	foos := o.foos
	if foos == 0 {
		foos = l.foos
	}
	r := newReport(l, foos, o.rounds, o.contestants)
	gaveUp := map[string]bool{}
	for round := range o.rounds {
		if err := o.round(ctx, r, round, binaries, gaveUp); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// round has an API server of its own, so that none gets old.
func (o options) round(ctx context.Context, r *report, round int, binaries map[string]string, gaveUp map[string]bool) (err error) {
	lab, err := o.startLab(ctx, r.load.nodes, binaries)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.stop()) }()
	if err := lab.warmUp(ctx); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	for i := range o.contestants {
		c := o.contestants[(round+i)%len(o.contestants)]
		if gaveUp[c.name] {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s ", r.Load, round+1, o.rounds, c.name)
		result, err := lab.try(ctx, c, r.load, r.Foos)
		gaveUp[c.name] = errors.Is(err, errGaveUp)
		if err != nil && (!gaveUp[c.name] || ctx.Err() != nil) {
			fmt.Fprintln(os.Stderr)
			return fmt.Errorf("%s: %w", c.name, err)
		}
		result.Round = round + 1
		r.Results = append(r.Results, result)
		fmt.Fprintf(os.Stderr, "has answered %d of %d changes in %.2f s, %d writes, %d refused; took %.0f s in all\n",
			result.Answered, result.Changes, result.Seconds, result.Calls.Writes, result.Calls.Refused, time.Since(began).Seconds())
	}
	return nil
}

// warmUp has the floor serve a few Foos.
func (l *lab) warmUp(ctx context.Context) error {
	_, err := l.try(ctx, floor(), creation, warmUp)
	return err
}
