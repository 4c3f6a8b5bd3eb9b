// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
)

func TestConflictIsRetriedOnceCacheHasCaughtUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		// The owner has written, and the cache does not have it yet.
		b.change(false, func(o testObject) { o.SetGeneration(2) })
		b.set(b.pod("a", true))
		b.wantWrites(write{2000 * ms, "1/1 ready on node-1", metav1.StatusReasonConflict})
		after(5 * time.Second)
		b.wantWrites()
		b.objects.Broadcaster.Action(watch.Modified, b.objects.object("default", "example"))
		b.wantWrites(write{7000 * ms, "1/1 ready on node-1", ""})
		after(time.Hour)
		b.wantWrites()
	})
}

func TestOutdatedVersionIsNotWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		b.objects.setLate(true)
		b.set(b.pod("a", true))
		b.wantWrites(write{2000 * ms, "1/1 ready on node-1", ""})
		after(2 * time.Second)
		b.set(b.pod("a", false))
		after(2 * time.Second)
		b.wantWrites()
		b.objects.setLate(false)
		b.objects.Broadcaster.Action(watch.Modified, b.objects.object("default", "example"))
		b.wantWrites(write{6000 * ms, "0/1 ready on node-1", ""})
	})
}

func TestDeletedObjectIsNotWrittenAgain(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		b.results()
		gone := b.objects.object("default", "example")
		b.objects.DeleteDropWatch(gone.DeepCopyObject())
		b.set(b.pod("a", true))
		b.wantWrites(write{2000 * ms, "1/1 ready on node-1", metav1.StatusReasonNotFound})
		after(1 * time.Second)
		b.set(b.pod("a", false))
		after(4 * time.Second)
		b.wantWrites()
		if results := b.results(); slices.Contains(results, reconcile.ResultError) {
			b.Errorf("syncs: %v, want no error", results)
		}
		b.objects.Broadcaster.Action(watch.Deleted, gone)
		b.set(b.pod("a", true))
		after(time.Hour)
		b.wantWrites()
	})
}

// The informer reports a re-created object as an update.
func TestObjectRecreatedDuringWriteIsSynced(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.objects.delay = 10 * ms
		b.start()
		after(3 * time.Second)
		b.objects.made()
		recreated := b.objects.object("default", "example")
		b.objects.DeleteDropWatch(recreated.DeepCopyObject())
		b.set(b.pod("a", true))
		b.wantWrites(write{3000 * ms, "1/1 ready on node-1", metav1.StatusReasonNotFound})
		recreated.SetUID("uid-recreated")
		*podsOf(recreated) = nil
		b.objects.Add(recreated)
		after(time.Hour)
		b.wantWrites(write{5010 * ms, "none", ""}) // after the grace period
	})
}

func TestFailedWriteIsRetried(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		b.objects.refuseWith(apierrors.NewServiceUnavailable("down"))
		b.set(b.pod("a", true))
		b.wantWrites(write{2000 * ms, "1/1 ready on node-1", metav1.StatusReasonServiceUnavailable})
		b.objects.refuseWith(nil)
		after(5 * ms)
		b.wantWrites(write{2005 * ms, "1/1 ready on node-1", ""})
	})
}

func TestForbiddenStatusIsRetriedEvery30Seconds(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		gr := schema.GroupResource{Group: "test", Resource: "tests"}
		b.objects.refuseWith(apierrors.NewForbidden(gr, "example", errors.New("not for you")))
		b.set(b.pod("a", true))
		after(10 * time.Minute)
		if tries := len(b.objects.made()); tries < 20 || tries > 26 {
			b.Errorf("tried %d times in 10 minutes, want one try per 30 s", tries)
		}
		b.objects.refuseWith(nil)
		after(30 * time.Second)
		writes := b.objects.made()
		if len(writes) != 1 || writes[0].Err != "" {
			b.Errorf("writes: %v, want the summary once", writes)
		}
	})
}

func TestOwnerAndAggregatorTakeTurns(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		key := cache.NewObjectName("default", "example")
		if !b.consistency.EnsureReady(key) {
			b.Fatal("EnsureReady() = false, want true")
		}
		b.set(b.pod("a", true))
		after(1 * time.Second)
		b.wantWrites()
		b.consistency.Done(key)
		after(100 * ms)
		b.wantWrites(write{3100 * ms, "1/1 ready on node-1", ""})
		// The aggregator's sync has called Done.
		if !b.consistency.EnsureReady(key) {
			b.Error("EnsureReady() = false, want true")
		}
		b.consistency.Done(key)
	})
}
