// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
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
	// The admin of the cluster is allowed everything, by the daemon too, whose own
	// certificate nobody has signed.
	config := l.cluster.Config()
	config.CAData, config.CAFile, config.Insecure = nil, "", true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	fetch := func(page, file string) error {
		return download(ctx, client, "https://"+address+"/debug/pprof/"+page, filepath.Join(dir, file))
	}
	cpu := make(chan error, 1)
	go func() { cpu <- fetch(fmt.Sprintf("profile?seconds=%.0f", length.Seconds()), "cpu.pprof") }()
	return func() error {
		defer client.CloseIdleConnections()
		return errors.Join(<-cpu, fetch("allocs", "allocs.pprof"))
	}, nil
}

func download(ctx context.Context, client *http.Client, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, content)
	}
	return os.WriteFile(path, content, 0o644)
}
