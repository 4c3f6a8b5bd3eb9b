// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/tolerant"
)

const ms = time.Millisecond

func TestFirstChangeIsWrittenAtOnceAndLastAlways(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})

		after(200 * ms)
		b.set(b.pod("a", false))
		after(300 * ms)
		b.set(b.pod("b", true))
		after(499 * ms)
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{1000 * ms, "1/2 ready on node-1 (2)", ""})

		// Each write begins an interval.
		after(999 * ms)
		b.set(b.pod("a", true))
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{2000 * ms, "2/2 ready on node-1 (2)", ""})

		// After an interval without a change, the next change is written at once again.
		after(1500 * ms)
		b.wantWrites()
		b.set(b.pod("b", false))
		b.wantWrites(write{3500 * ms, "1/2 ready on node-1 (2)", ""})
		after(2000 * ms)
		b.deletePod("b")
		b.wantWrites(write{5500 * ms, "1/1 ready on node-1", ""})
		after(time.Hour)
		b.wantWrites()
	})
}

func TestUnchangedSummaryIsNotWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})

		// A change that is reverted within the interval.
		b.set(b.pod("a", false))
		after(500 * ms)
		b.set(b.pod("a", true))
		after(time.Hour)
		// A change by the owner.
		b.change(true, touch)
		after(time.Hour)
		b.wantWrites()
		// A change of a Pod that does not affect the summary causes no sync.
		b.results()
		other := b.pod("a", true)
		other.Annotations = map[string]string{"other": "x"}
		b.set(other)
		after(time.Hour)
		if results := b.results(); len(results) > 0 {
			b.Errorf("syncs: %v, want none", results)
		}
		b.wantWrites()
	})
}

// touch enqueues an object by an irrelevant change.
func touch(o testObject) { o.SetAnnotations(map[string]string{"touched": "true"}) }

// Readers see from it whether the summary predates the last change of the spec.
func TestGenerationIsWrittenWithPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		wantGeneration := func(want int64) {
			b.Helper()
			if got := (*podsOf(b.objects.object("default", "example"))).ObservedGeneration; got != want {
				b.Errorf("the summary is of generation %d, want %d", got, want)
			}
		}
		b.change(true, func(o testObject) { o.SetGeneration(1) })
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		wantGeneration(1)

		// Pods that change soon after cost no extra write.
		after(time.Minute)
		b.change(true, func(o testObject) { o.SetGeneration(2) })
		after(999 * ms)
		b.wantWrites()
		wantGeneration(1)
		b.set(b.pod("b", true))
		b.wantWrites(write{time.Minute + 999*ms, "2/2 ready on node-1 (2)", ""})
		wantGeneration(2)

		// If they do not change, the write happens after the grace period.
		after(time.Minute)
		b.change(true, func(o testObject) { o.SetGeneration(3) })
		after(500 * ms)
		b.change(true, touch)
		after(499 * ms)
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{2*time.Minute + 1999*ms, "2/2 ready on node-1 (2)", ""})
		wantGeneration(3)
		after(time.Hour)
		b.wantWrites()

		// An earlier version of the daemon did not write the generation.
		b.change(true, func(o testObject) { (*podsOf(o)).ObservedGeneration = 0 })
		after(interval)
		b.wantWrites(write{time.Hour + 2*time.Minute + 2999*ms, "2/2 ready on node-1 (2)", ""})
		wantGeneration(3)
	})
}

func TestNextProcessFindsNothingToWrite(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.change(true, func(o testObject) {
			*podsOf(o) = &workloadv1alpha1.PodSummary{
				Summary: "1/1 ready on node-1", Total: 1, Running: 1, Ready: 1, Nodes: []workloadv1alpha1.NodeSummary{{Name: "node-1", Pods: 1, Ready: 1}},
			}
		})
		b.start()
		after(time.Hour)
		b.wantWrites()
	})
}

func TestNextProcessReportsMissingPodsAtOnce(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.change(true, func(o testObject) {
			*podsOf(o) = &workloadv1alpha1.PodSummary{Summary: "1/1 ready on node-1", Total: 1}
		})
		b.start()
		b.wantWrites(write{0, "none", ""})
	})
}

func TestNewObjectHasGracePeriodToGetPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		b.change(true, touch)
		after(999 * ms)
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{1000 * ms, "none", ""})
		after(time.Hour)
		b.wantWrites()

		// The removal of all Pods is written like any other change.
		b.set(b.pod("a", true))
		b.wantWrites(write{time.Hour + 1000*ms, "1/1 ready on node-1", ""})
		after(time.Hour)
		b.deletePod("a")
		b.wantWrites(write{2*time.Hour + 1000*ms, "none", ""})
	})
}

func TestPodsWithinGracePeriodSaveOneWrite(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(500 * ms)
		b.set(b.pod("a", true))
		after(500 * ms)
		if made := b.objects.made(); len(made) != 1 || made[0].Summary != "1/1 ready on node-1" {
			b.Errorf("writes: %v, want only the Pod", made)
		}
	})
}

func TestObjectsWithoutWrites(t *testing.T) {
	for name, change := range map[string]func(testObject){
		"undecodable": func(o testObject) {
			o.SetAnnotations(map[string]string{tolerant.AnnotationDecodeError: "spec.deploymentName: array where string is expected"})
		},
		// The existing Deployment belongs to an earlier object.
		"re-created object": func(o testObject) {
			o.SetUID("uid-another")
			*podsOf(o) = &workloadv1alpha1.PodSummary{Summary: "none"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				before := b.objects.object("default", "example")
				b.objects.DeleteDropWatch(before.DeepCopyObject())
				change(before)
				b.objects.AddDropWatch(before)
				b.set(b.pod("a", true))
				b.start()
				after(2 * time.Second)
				b.set(b.pod("a", false))
				after(time.Hour)
				b.wantWrites()
			})
		})
	}
}

// recreate deletes the object and after a gap creates another of the same name, with the
// given summary.
func (b *bubble) recreate(gap time.Duration, pods *workloadv1alpha1.PodSummary) {
	next := b.objects.object("default", "example")
	b.objects.Delete(next.DeepCopyObject())
	after(gap)
	next.SetUID("uid-another")
	*podsOf(next) = pods
	b.objects.Add(next)
}

func TestThrottlingOfDeletedObject(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(100 * ms)
		b.recreate(100*ms, &workloadv1alpha1.PodSummary{Summary: "none"}) // as restored from a backup
		after(100 * ms)
		b.wantWrites()

		// The new object is not throttled by the write of the old one.
		b.owner.UID = "uid-another"
		b.set(deployment(b.metadata("web", b.owner)))
		b.wantWrites(write{300 * ms, "1/1 ready on node-1", ""})
	})
}

func TestRecreatedObjectHasGracePeriodToGetPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(1 * time.Second)
		b.wantWrites(write{1000 * ms, "none", ""})
		b.recreate(10*ms, nil)
		after(999 * ms)
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{2010 * ms, "none", ""})
	})
}

// Somebody replaces the Deployment by one whose Pods lack the watched label.
func TestUnwatchedPodsRemoveSummary(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(2 * time.Second)
		adopted := deployment(b.metadata("web", b.owner))
		adopted.UID, adopted.Spec.Selector.MatchLabels = "uid-adopted", map[string]string{"app": "adopted"}
		b.set(adopted)
		b.wantWrites(write{2000 * ms, noSummary, ""})
		after(time.Hour)
		b.wantWrites()
		b.set(deployment(b.metadata("web", b.owner)))
		b.wantWrites(write{time.Hour + 2000*ms, "1/1 ready on node-1", ""})
	})
}

func TestUnwatchedPodsGetNoSummary(t *testing.T) {
	inBubble(t, func(b *bubble) {
		adopted := deployment(b.metadata("web", b.owner))
		adopted.Spec.Selector.MatchLabels = map[string]string{"app": "adopted"}
		b.set(adopted)
		b.start()
		after(time.Hour)
		b.wantWrites()
	})
}

// A finalizer holds an object in deletion, and its Pods still change.
func TestObjectInDeletionIsSummarized(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(2 * time.Second)
		b.change(true, func(o testObject) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) })
		after(0)
		b.deletePod("a")
		b.wantWrites(write{2000 * ms, "none", ""})
		after(time.Hour)
		b.wantWrites()
	})
}
