// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"samplecontroller.io/controller-manager/internal/longwrite"
)

// WithLongWrite returns a context for the second try of a write that has timed out: see
// [IsWriteTimeout]. The write may take longer than --write-timeout, so that it succeeds behind
// a slow admission webhook: as long as no other process can take the Lease, even if it is not
// renewed again; without leader election 30 s. It ends early with ctx, with the timeout of the
// sync, with a lost Lease and with a shutdown. Only one write of each controller at a time may
// take longer; the others get the usual time, so that they do not occupy all workers.
//
// A [Loop] does this by itself for a key whose last sync returned such an error. Call it only
// if your sync remembers the failed write and returns another result.
func WithLongWrite(ctx context.Context) context.Context { return longwrite.Allow(ctx) }

// IsWriteTimeout reports whether a write was given up before it was answered, by this process
// after --write-timeout or by the API server (504). The usual reason is a slow admission
// webhook. The write may have been committed, or may still be.
func IsWriteTimeout(err error) bool {
	return errors.Is(err, longwrite.ErrTimeout) || apierrors.IsTimeout(err)
}
