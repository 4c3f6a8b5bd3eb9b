// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command binaries builds the programs of the local cluster that are not in the
// cache yet, and says what it does. Tests would build them as well, but could
// not say why that takes long.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := cluster.Binaries(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
