// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/kubernetes"
)

// usage is what a process has used since its start, as counted by the kernel, in bytes and
// seconds of CPU. Peak memory is the highest resident memory, including the mapped binary.
// Anonymous memory is not mapped from files.
type usage struct {
	cpu                       float64
	peak, resident, anonymous uint64
	received                  uint64 // bytes read, most of them from the network
}

// usageOf returns the usage of a process that a process.Group runs in dir. The rusage of an
// exited child is no substitute: its peak is never below that of its parent.
func usageOf(dir, name string) (u usage, err error) {
	content, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if err != nil {
		return u, fmt.Errorf("%s does not run: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return u, fmt.Errorf("reading the process ID of %s: %w", name, err)
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return u, err
	}
	stat, statErr := p.Stat()
	status, statusErr := p.NewStatus()
	io, ioErr := p.IO()
	return usage{stat.CPUTime(), status.VmHWM, status.VmRSS, status.RssAnon, io.RChar},
		errors.Join(statErr, statusErr, ioErr)
}

func (r *running) usage() (usage, error) { return usageOf(r.harness.dir, r.Name()) }

// loadAverage returns the load average of the last minute, or 0 if it is unknown.
func loadAverage() (load float64) {
	content, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(content), &load)
	return load
}

// page returns the content of a page of a daemon.
func (r *running) page(ctx context.Context, path string) ([]byte, error) {
	config := r.harness.cluster.Config()
	// The daemon's own certificate is self-signed.
	config.Host, config.CAData, config.CAFile, config.Insecure = r.url, nil, "", true
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	content, err := client.CoreV1().RESTClient().Get().RequestURI(path).DoRaw(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), r.Err())
	}
	return content, nil
}

// profile starts CPU profiles of the API server and of a daemon, if the command line asks for
// them. The returned function waits for them and adds memory profiles of the daemon.
func (t *trial) profile(ctx context.Context) (finish func() error) {
	if t.options.profile == 0 || t.process == nil {
		return func() error { return nil }
	}
	save := func(kind string, content []byte, err error) error {
		if err == nil {
			err = os.MkdirAll(t.output, 0o755)
		}
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%d-%s.%s.pprof", t.load.name, t.n, t.candidate.name, kind)
		return os.WriteFile(filepath.Join(t.output, name), content, 0o644)
	}
	fetch := func(path, kind string) error {
		if t.process.url == "" {
			return nil
		}
		// The daemon may have only just started.
		return t.await(ctx, "the daemon serves profiles", func(ctx context.Context) error {
			content, err := t.process.page(ctx, "/debug/pprof/"+path)
			return save(kind, content, err)
		})
	}
	seconds := fmt.Sprintf("%.0f", t.options.profile.Seconds())
	cpu := make(chan error, 2)
	go func() { cpu <- fetch("profile?seconds="+seconds, "cpu") }()
	go func() {
		content, err := t.kube.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", seconds).DoRaw(ctx)
		cpu <- save("api-server", content, err)
	}()
	return func() error { return errors.Join(<-cpu, <-cpu, fetch("heap", "heap"), fetch("allocs", "allocs")) }
}
