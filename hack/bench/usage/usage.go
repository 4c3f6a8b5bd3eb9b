// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage tells what processes take, as the kernel counts it. It needs Linux.
package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has taken since its start.
type Usage struct {
	CPU       time.Duration
	Peak      uint64 // the most that was resident, in bytes, with what is mapped of its binary
	Resident  uint64 // what is resident by now
	Anonymous uint64 // of that, what is not mapped of a file
	Received  uint64 // bytes that were read, from the network above all
}

// Of returns what a process has taken that a process.Group runs in dir. The rusage of an
// ended child would not do: the peak of its memory is never below that of its parent,
// which it shares until it executes its own program.
func Of(dir, name string) (Usage, error) {
	content, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if err != nil {
		return Usage{}, fmt.Errorf("%s does not run: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the process ID of %s: %w", name, err)
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	io, err := p.IO()
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		CPU:  time.Duration(stat.CPUTime() * float64(time.Second)),
		Peak: status.VmHWM, Resident: status.VmRSS, Anonymous: status.RssAnon,
		Received: io.RChar,
	}, nil
}

// LoadAverage is how busy the machine was in the last minute.
func LoadAverage() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := proc.LoadAvg()
	if err != nil {
		return 0
	}
	return load.Load1
}
