// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// usage is what a process has used since its start, as counted by the kernel, in bytes and
// seconds of CPU. Peak memory is the highest resident memory, including the mapped binary.
// Anonymous memory is not mapped from files.
type usage struct {
	cpu             float64
	peak, anonymous uint64
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
	return usage{stat.CPUTime(), status.VmHWM, status.RssAnon}, errors.Join(statErr, statusErr)
}

// loadAverage returns the load average of the last minute, or 0 if it is unknown.
func loadAverage() (load float64) {
	content, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(content), &load)
	return load
}
