// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package longwrite marks writes that may take longer than the write timeout, because an
// earlier try took too long. Package reconcile marks the context of a sync, package writes
// lets one write of each controller keep the mark, and package leadership limits the write.
package longwrite

import (
	"context"
	"errors"
)

// ErrTimeout is wrapped by the error of a write that this process gave up before it was
// answered. The API server may have committed it.
var ErrTimeout = errors.New("write timeout")

type key struct{}

// Allow returns a context whose writes may take longer than the write timeout.
func Allow(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Refuse returns a context whose writes may not.
func Refuse(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, false) }

// Allowed reports whether writes may take longer than the write timeout.
func Allowed(ctx context.Context) bool {
	allowed, _ := ctx.Value(key{}).(bool)
	return allowed
}
