// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/bench/page"
)

// secureAddress is where a daemon that is started with these arguments serves.
func secureAddress(args []string) string {
	var host, port string
	for _, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--bind-address":
			host = value
		case "--secure-port":
			port = value
		}
	}
	return net.JoinHostPort(host, port)
}

// profile has a daemon that serves at an address profile its CPU from now on. What it
// returns waits until that is written into dir, with what was allocated since the start.
func (l *lab) profile(ctx context.Context, address, dir string, length time.Duration) (wait func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	fetch := func(path, file string) error {
		content, err := page.Get(ctx, l.cluster.Config(), "https://"+address+"/debug/pprof/"+path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, file), content, 0o644)
	}
	cpu := make(chan error, 1)
	go func() { cpu <- fetch(fmt.Sprintf("profile?seconds=%.0f", length.Seconds()), "cpu.pprof") }()
	return func() error {
		return errors.Join(<-cpu, fetch("allocs", "allocs.pprof"))
	}, nil
}
