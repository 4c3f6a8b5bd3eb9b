// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/internal/server"
)

// serve serves until ctx ends.
func serve(ctx context.Context, o *server.Options, kubeconfig string, ready func(*http.Request) error) error {
	config, err := o.Config(ctx, kubeconfig)
	if err != nil {
		return err
	}
	config.Readyz = []healthz.HealthChecker{healthz.NamedCheck("caches", ready)}
	wait, err := server.Start(ctx, config)
	if err != nil {
		return err
	}
	wait()
	return nil
}

// A program without a port serves nothing.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(serve(ctx, server.NewOptions("example-manager", 0), "", nil))
	// Output: <nil>
}
