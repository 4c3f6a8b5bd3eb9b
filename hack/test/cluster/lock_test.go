// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			held, err := lock(t.Context(), path, func() {})
			if err != nil {
				t.Error(err)
				return
			}
			defer held.Close()
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d goroutines hold the lock", n)
			}
			inside.Add(-1)
		})
	}
	wg.Wait()
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lock(t.Context(), path, func() { t.Error("waits for a free lock") })
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := 0
	if _, err := lock(ctx, path, func() { waits++; cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("giving up: %v, want %v", err, context.Canceled)
	}
	if waits != 1 {
		t.Errorf("called waiting %d times, want once", waits)
	}

	second, err := lock(t.Context(), path, func() { held.Close() })
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
