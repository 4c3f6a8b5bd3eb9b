// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"samplecontroller.io/sample-controller-manager/hack/bench/page"
)

// profiler writes profiles of a daemon that meets a load.
type profiler struct {
	dir string
	// length is that of the profile of the CPU, which begins with the first change; 0:
	// there are to be none.
	length time.Duration
}

// profiles are of one trial.
type profiles struct {
	cpu    chan error // nil if there are none
	memory func() error
}

// begin begins to profile a trial, if that is wanted and the contestant is a daemon: the
// others have no profiles to ask for.
func (p *profiles) begin(ctx context.Context, t *trial) {
	profiler, address := t.lab.profiler, t.lab.secureAddress
	if profiler.length == 0 || address == "" {
		return
	}
	fetch := func(path, kind string) error {
		name := fmt.Sprintf("%s-%d-%s.%s.pprof", t.load.name, t.foos, t.contestant.name, kind)
		return profiler.fetch(ctx, t.lab, "https://"+address+"/debug/pprof/"+path, name)
	}
	p.cpu = make(chan error, 1)
	go func() { p.cpu <- fetch(fmt.Sprintf("profile?seconds=%.0f", profiler.length.Seconds()), "cpu") }()
	p.memory = func() error { return errors.Join(fetch("heap", "heap"), fetch("allocs", "allocs")) }
}

// finish writes what has not been written yet, when the load is met.
func (p *profiles) finish() error {
	if p.cpu == nil {
		return nil
	}
	return errors.Join(<-p.cpu, p.memory())
}

// fetch writes a profile into a file. A daemon that was only just started is waited for.
func (p profiler) fetch(ctx context.Context, l *lab, url, name string) error {
	var content []byte
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll/20, l.patience, true, func(ctx context.Context) (bool, error) {
		content, last = page.Get(ctx, l.cluster.Config(), url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("profiling: %w", last)
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, name), content, 0o644)
}
