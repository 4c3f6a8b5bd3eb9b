// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// DeleteCRD deletes a CRD with its objects, and returns when it is gone. It takes at most two
// minutes.
//
// The API server's controller that finishes the deletion drops a write after a conflict, and
// retries only when the CRD changes or after five minutes. DeleteCRD therefore changes the CRD
// until it is gone.
func DeleteCRD(ctx context.Context, c *cluster.Cluster, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := c.Kubectl(ctx, "delete", "crd", name, "--wait=false"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		_, err := c.Kubectl(ctx, "wait", "crd", name, "--for=delete", "--timeout=2s")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("deleting CRD %s: %w: %w", name, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond): // kubectl may have failed immediately
		}
		_, _ = c.Kubectl(ctx, "annotate", "crd", name, "--overwrite", fmt.Sprintf("waiting=%d", i)) // it may be gone
	}
}
