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

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

// stopGrace is longer than the daemon itself gives its controllers.
const stopGrace = 30 * time.Second

// daemon is the running sample-controller-manager. Its log goes to our standard
// error.
type daemon struct {
	process *process.Process
	url     string
}

// startDaemon starts the daemon that was built, as its own ServiceAccount.
func startDaemon(ctx context.Context, root, dir string, group *process.Group, adminKubeconfig string, tokenLifetime time.Duration) (*daemon, error) {
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

// during calls work with a context that also ends when the daemon does. If the daemon has
// ended, it returns how.
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
		return fmt.Errorf("%w; its log above shows why", ended)
	}
	return err
}

// stop ends the daemon, unless it has ended, and waits for it.
func (d *daemon) stop() error {
	select {
	case <-d.process.Done():
		return nil
	default:
	}
	err := d.process.Stop(stopGrace)
	if err == nil && d.process.ExitCode() != 0 {
		return fmt.Errorf("asked to stop, %w", d.process.Err())
	}
	return err
}
