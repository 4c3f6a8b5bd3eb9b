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
// [IsWriteTimeout]. Such a write may take longer than --write-timeout, so that it succeeds
// behind a slow admission webhook. It ends at the latest with ctx, when a term of leadership
// would be over that is not renewed from now on, or when the process stops leading. At most
// one write of each controller may take longer at a time; others have the usual time.
//
// A [Loop] does this on its own for a key whose last sync returned such an error. Call it only
// in a sync that does not return the error, but remembers the failed write.
func WithLongWrite(ctx context.Context) context.Context { return longwrite.Allow(ctx) }

// IsWriteTimeout reports whether a write was given up before it was answered, by this process
// after --write-timeout or by the API server (504). The usual reason is a slow admission
// webhook. The write may have been committed, or may still be.
func IsWriteTimeout(err error) bool {
	return errors.Is(err, longwrite.ErrTimeout) || apierrors.IsTimeout(err)
}
