// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The informers are not in step: the cache may have a Pod before its owners.
func TestOwnerChainEnqueuesObject(t *testing.T) {
	inBubble(t, func(b *bubble) {
		if err := b.kube.Tracker().Delete(resourceOf(&appsv1.Deployment{}), "default", "web"); err != nil {
			b.Fatal(err)
		}
		b.start()
		after(2 * time.Second)
		b.objects.made()
		pod := b.pod("a", true)
		pod.OwnerReferences = []metav1.OwnerReference{*owned("ReplicaSet", "web-2")}
		b.set(pod)
		after(1 * time.Second)
		b.replicaSets.Add(&metav1.PartialObjectMetadata{ObjectMeta: b.metadata("web-2", *owned("Deployment", "web"))})
		after(1 * time.Second)
		b.wantWrites()
		b.set(deployment(b.metadata("web", b.owner)))
		b.wantWrites(write{4000 * ms, "1/1 ready on node-1", ""})

		after(1 * time.Second)
		b.replicaSets.Delete(&metav1.PartialObjectMetadata{ObjectMeta: b.metadata("web-2", *owned("Deployment", "web"))})
		b.wantWrites(write{5000 * ms, "none", ""})
		after(1 * time.Second)
		b.replicaSets.Add(&metav1.PartialObjectMetadata{ObjectMeta: b.metadata("web-2", *owned("Deployment", "web"))})
		b.wantWrites(write{6000 * ms, "1/1 ready on node-1", ""})

		// Somebody removes the owner reference of the Deployment.
		after(1 * time.Second)
		b.set(deployment(b.metadata("web")))
		b.wantWrites(write{7000 * ms, "none", ""})
	})
}

// However often the Pods of an object change, each write costs only one sync.
func TestChangesToThrottledObjectCostNoSync(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		b.results()
		for i := range 9 {
			after(100 * ms)
			b.set(b.pod("a", i%2 == 1))
			b.set(b.pod("b", true))
		}
		// Another manager also removes the summary.
		b.change(true, func(o testObject) { *podsOf(o) = nil })
		if results := b.results(); len(results) > 0 {
			b.Errorf("syncs before the interval was over: %v, want none", results)
		}
		after(100 * ms)
		b.wantWrites(write{1000 * ms, "1/2 ready on node-1 (2)", ""})
		after(time.Hour)
		// The sync of the write, and one after the interval.
		if results := b.results(); len(results) != 2 {
			b.Errorf("syncs: %v, want two", results)
		}
		b.wantWrites()
	})
}

// The cache has the change of a write before the write returns.
func TestEventOfOwnWriteCostsNoSync(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.objects.delay = 10 * ms
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(time.Hour)
		// The sync of the write, and one after the interval.
		if results := b.results(); len(results) != 2 {
			b.Errorf("syncs: %v, want two", results)
		}
	})
}

// Without an interval, nothing syncs an object after its write.
func TestChangeDuringWriteIsNotLostWithoutInterval(t *testing.T) {
	inBubbleOf(t, 0, func(b *bubble) {
		b.objects.delay = 100 * ms
		b.set(b.pod("a", false))
		b.start()
		after(50 * ms)
		b.set(b.pod("a", true))
		after(time.Hour)
		b.wantWrites(write{0, "0/1 ready on node-1", ""}, write{100 * ms, "1/1 ready on node-1", ""})
	})
}

func TestPanicDoesNotThrottleObjectForever(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		after(time.Hour)
		b.objects.made()
		b.objects.refuseWith(errPanics)
		b.set(b.pod("a", false))
		synctest.Wait()
		b.objects.refuseWith(nil)
		b.set(b.pod("a", true)) // so that there is nothing to write
		after(time.Hour)
		b.objects.made()
		b.set(b.pod("a", false))
		b.wantWrites(write{2 * time.Hour, "0/1 ready on node-1", ""})
	})
}

// A process that loses leadership drops its delayed syncs.
func TestNextRunSyncsThrottledObjects(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.startInformers()
		run := func(during func()) {
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- b.controller.Run(ctx) }()
			during()
			cancel()
			if err := <-done; err != nil {
				b.Errorf("Run() = %v, want nil", err)
			}
		}
		run(func() {
			b.wantWrites(write{0, "1/1 ready on node-1", ""})
			after(200 * ms)
			b.set(b.pod("a", false))
			after(200 * ms)
		})
		b.wantWrites()
		run(func() {
			after(time.Hour)
			b.wantWrites(write{1000 * ms, "0/1 ready on node-1", ""})
		})
	})
}

func TestOnlyOwnerChangesOfDeploymentsMatter(t *testing.T) {
	deployment := func(uid types.UID, owners ...metav1.OwnerReference) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: uid, OwnerReferences: owners}}
	}
	a, b := metav1.OwnerReference{UID: "a", Controller: ptr.To(true)}, metav1.OwnerReference{UID: "b", Controller: ptr.To(true)}
	noController := metav1.OwnerReference{UID: "c"}
	for name, test := range map[string]struct {
		before, now *appsv1.Deployment
		want        bool
	}{
		"the same owner":          {deployment("1", a), deployment("1", a), false},
		"no owner":                {deployment("1"), deployment("1", noController), false},
		"another owner":           {deployment("1", a), deployment("1", b), true},
		"an owner":                {deployment("1"), deployment("1", a), true},
		"owner removed":           {deployment("1", a), deployment("1", noController), true},
		"a re-created Deployment": {deployment("1", a), deployment("2", a), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayBeReportedInstead(test.before, test.now); got != test.want {
				t.Errorf("mayBeReportedInstead() = %v, want %v", got, test.want)
			}
		})
	}
}
