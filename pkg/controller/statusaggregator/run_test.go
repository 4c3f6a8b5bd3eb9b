// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

func TestRunEndsWithContextAndCanBeRepeated(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.startInformers()
		for range 2 {
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- b.controller.Run(ctx) }()
			after(time.Minute)
			select {
			case err := <-done:
				b.Fatalf("Run() = %v before its context ended", err)
			default:
			}
			cancel()
			if err := <-done; err != nil {
				b.Errorf("Run() = %v, want nil", err)
			}
		}
	})
}

func TestRunWaitsForItsSyncs(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.objects.slow = 10 * time.Second
		b.set(b.pod("a", true))
		b.startInformers()
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- b.controller.Run(ctx) }()
		after(1 * time.Second)
		cancel()
		if err := <-done; err != nil {
			b.Errorf("Run() = %v, want nil", err)
		}
		if made := b.objects.made(); len(made) != 1 {
			b.Errorf("Run() returned before a running write: %v", made)
		}
	})
}

func TestFailedLoopStopsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, samplev1alpha1.SchemeGroupVersion.WithKind("Foo"), interval)
		b.startInformers()
		b.stopFoos() // no more handlers can be added
		synctest.Wait()
		if err := b.controller.Run(b.Context()); err == nil {
			t.Error("Run() = nil, want the error of the loop of Foos")
		}
	})
}

// A kind whose API is unavailable does not delay the other.
func TestUnservedKindDelaysNoOther(t *testing.T) {
	inBubble(t, func(b *bubble) {
		other := b.foos
		if b.objects == b.foos {
			other = b.icecreams
		}
		other.ListError = context.DeadlineExceeded
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
	})
}
