// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

const (
	// readyTimeout bounds the wait for the daemon's caches to be filled.
	readyTimeout = 60 * time.Second

	// stopGrace is longer than the daemon itself gives its controllers.
	stopGrace = 30 * time.Second
)

// daemon is the running sample-controller-manager. Its log goes to our standard
// error.
type daemon struct {
	process *process.Process
	url     string

	stopRenewal context.CancelFunc
	renewal     sync.WaitGroup
}

// startDaemon starts the daemon that was built, as its own ServiceAccount.
func startDaemon(ctx context.Context, root, dir string, group *process.Group, adminKubeconfig string) (*daemon, error) {
	credentials, err := cluster.NewCredentials(ctx, adminKubeconfig, dir, daemonName, daemonName)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := group.Start(daemonName, os.Stderr, filepath.Join(root, "bin", daemonName),
		"--kubeconfig="+credentials.Kubeconfig,
		"--leader-elect-resource-namespace="+daemonName,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
	)
	if err != nil {
		return nil, err
	}
	d := &daemon{process: p, url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	// Until the daemon has ended, whatever becomes of ctx.
	renewal, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stopRenewal = stop
	d.renewal.Go(func() {
		credentials.KeepFresh(renewal, func(err error) {
			fmt.Fprintf(os.Stderr, "renewing the daemon's token, to be tried again: %v\n", err)
		})
	})
	return d, nil
}

// during calls work with a context that also ends when the daemon does, and
// returns the daemon's end, if it came by itself, rather than work's failure.
func (d *daemon) during(ctx context.Context, work func(context.Context) error) error {
	working, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		select {
		case <-d.process.Done():
		case <-working.Done():
		}
	})
	err := work(working)
	cancel()
	watch.Wait()
	select {
	case <-d.process.Done():
		return fmt.Errorf("%w; its log above tells why", d.process.Err())
	default:
		return err
	}
}

// waitReady waits until the daemon's /readyz answers with OK.
func (d *daemon) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// The certificate is self-signed, and the address our own.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	defer client.CloseIdleConnections()
	for {
		err := d.ready(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the daemon to be ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *daemon) ready(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return nil
}

// stop ends the daemon, unless it has ended, and waits for it.
func (d *daemon) stop() error {
	defer d.renewal.Wait()
	defer d.stopRenewal()
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

// freePort returns a port that nobody listens on just now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
