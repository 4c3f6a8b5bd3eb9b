// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
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
		b.wantWrites(write{4010 * ms, "none", ""}) // after the grace period
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
		after(500 * ms) // tried after 100, 300, 700 and 1500 ms
		b.wantWrites(write{3500 * ms, "1/1 ready on node-1", ""})
		// The aggregator's sync has called Done.
		if !b.consistency.EnsureReady(key) {
			b.Error("EnsureReady() = false, want true")
		}
		b.consistency.Done(key)
	})
}

// TestKindWithoutStatusCostsNothing serves a kind without the subresource status. The API server
// then answers a status write as if the object did not exist.
func TestKindWithoutStatusCostsNothing(t *testing.T) {
	inBubble(t, func(b *bubble) {
		const objects = 100
		for i := range objects {
			o := b.objects.object("default", "example")
			o.SetName(fmt.Sprintf("example-%d", i))
			o.SetUID(types.UID("uid-" + o.GetName()))
			b.objects.Add(o)
		}
		b.objects.refuseWith(apierrors.NewNotFound(schema.GroupResource{}, "example"))
		b.set(b.pod("a", true))
		b.start()
		after(2 * time.Second) // the grace period of the others, too
		// Only the first object of each worker finds out.
		if tries, reads := len(b.objects.made()), b.objects.read(); tries < 1 || tries > 2 || reads != tries {
			t.Errorf("%d writes and %d reads, want one or two", tries, reads)
		}
		if denied := writes.Summary(b.writes.Denied()); !strings.Contains(denied, "is not served: apply the CRDs of this version") {
			t.Errorf("the controller lacks %q, want the subresource", denied)
		}
		b.results()
		after(10 * time.Minute)
		if tries, reads := len(b.objects.made()), b.objects.read(); tries < 15 || tries > 22 || reads != tries {
			t.Errorf("%d writes and %d reads in 10 minutes, want one each 30 s", tries, reads)
		}
		results := b.results()
		if most := 25 * (objects + 1); len(results) > most || slices.Contains(results, reconcile.ResultStale) || slices.Contains(results, reconcile.ResultError) {
			t.Errorf("%d syncs in 10 minutes, want at most %d, and none that is stale or fails", len(results), most)
		}
		if n := len(b.events.Events); n > 0 {
			t.Errorf("%d Events, want none", n)
		}

		b.objects.refuseWith(nil)
		after(time.Minute + time.Second)
		for i := range objects {
			if name := fmt.Sprintf("example-%d", i); *podsOf(b.objects.object("default", name)) == nil {
				t.Errorf("%s has no summary a minute after the repair", name)
			}
		}
		if denied := b.writes.Denied(); len(denied) > 0 {
			t.Errorf("the controller lacks %v after the repair, want nothing", denied)
		}
	})
}

func TestRefusedSummaryIsReportedOnce(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(2 * time.Second)
		b.objects.made()
		b.objects.refuseWith(&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 500, Message: "failed to create typed patch object: .status.pods.terminating: field not declared in schema",
		}})
		b.set(b.pod("a", true))
		after(10 * time.Minute)
		if tries := len(b.objects.made()); tries < 10 || tries > 25 {
			t.Errorf("tried %d times in 10 minutes, want the usual backoff", tries)
		}
		want := "Warning StatusWriteFailed Status cannot be written: " +
			"failed to create typed patch object: .status.pods.terminating: field not declared in schema; apply the CRDs of this version"
		if n := len(b.events.Events); n != 1 {
			t.Errorf("%d Events, want one", n)
		} else if got := <-b.events.Events; got != want {
			t.Errorf("Event %q, want %q", got, want)
		}
		b.objects.refuseWith(nil)
		after(6 * time.Minute)
		if made := b.objects.made(); len(made) != 1 || made[0].Err != "" {
			t.Errorf("writes: %v, want the summary once", made)
		}
	})
}
