// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
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
	fetch := func(page, kind string) error {
		name := fmt.Sprintf("%s-%d-%s.%s.pprof", t.load.name, t.foos, t.contestant.name, kind)
		return profiler.fetch(ctx, t.lab, "https://"+address+"/debug/pprof/"+page, name)
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
	// The admin of the cluster is allowed everything, by the daemon too, whose own
	// certificate nobody has signed.
	config := l.cluster.Config()
	config.CAData, config.CAFile, config.Insecure = nil, "", true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var content []byte
	var last error
	err = wait.PollUntilContextTimeout(ctx, poll/20, l.patience, true, func(ctx context.Context) (bool, error) {
		content, last = get(ctx, client, url)
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

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, strings.TrimSpace(string(content)))
	}
	return content, err
}
