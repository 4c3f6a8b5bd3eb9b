// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

// stopGrace is longer than the time that the daemon gives its controllers to stop.
const stopGrace = 30 * time.Second

// daemon is the running sample-controller-manager. It logs to the standard error of this
// process.
type daemon struct {
	process *process.Process
	url     string
}

// startDaemon starts the previously built daemon as its own ServiceAccount.
func startDaemon(ctx context.Context, root, dir string, group *process.Group, adminKubeconfig string,
	tokenLifetime time.Duration) (*daemon, error) {
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, adminKubeconfig, dir, daemonName, daemonName, tokenLifetime)
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	p, err := group.Start(daemonName, os.Stderr, filepath.Join(root, "bin", daemonName),
		"--kubeconfig="+kubeconfig,
		"--leader-elect-resource-namespace="+daemonName,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
	)
	if err != nil {
		return nil, err
	}
	return &daemon{process: p, url: fmt.Sprintf("https://127.0.0.1:%d", port)}, nil
}

// during calls work with a context that is also canceled when the daemon ends. If the daemon
// has ended, the error says how.
func (d *daemon) during(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case <-d.process.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	err := work(ctx)
	if ended := d.process.Err(); ended != nil {
		return fmt.Errorf("%w; see its log above", ended)
	}
	return err
}

// stop stops the daemon, if it still runs, and waits for it.
func (d *daemon) stop() error {
	select {
	case <-d.process.Done():
		return nil
	default:
	}
	err := d.process.Stop(stopGrace)
	if err == nil && d.process.ExitCode() != 0 {
		return fmt.Errorf("after SIGTERM: %w", d.process.Err())
	}
	return err
}
