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

func TestTheFirstChangeIsWrittenAtOnceTheLastAlways(t *testing.T) {
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

		// Each write begins an interval of its own.
		after(999 * ms)
		b.set(b.pod("a", true))
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{2000 * ms, "2/2 ready on node-1 (2)", ""})

		// After one without a change the next is written at once again.
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

func TestWhatTheStatusSaysAlreadyIsNotWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})

		// A change that was undone before its turn.
		b.set(b.pod("a", false))
		after(500 * ms)
		b.set(b.pod("a", true))
		after(time.Hour)
		// One of the owner.
		b.change(true, touch)
		after(time.Hour)
		b.wantWrites()
		// One that says nothing else is not even looked at.
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

// touch enqueues an object by a change that asks for nothing.
func touch(o testObject) { o.SetAnnotations(map[string]string{"touched": "true"}) }

// A reader sees by it whether the summary is from before the last change of the spec.
func TestGenerationIsWrittenWithThePods(t *testing.T) {
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

		// Pods that follow cost no write more.
		after(time.Minute)
		b.change(true, func(o testObject) { o.SetGeneration(2) })
		after(999 * ms)
		b.wantWrites()
		wantGeneration(1)
		b.set(b.pod("b", true))
		b.wantWrites(write{time.Minute + 999*ms, "2/2 ready on node-1 (2)", ""})
		wantGeneration(2)

		// Those that do not are waited for, for an interval.
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

		// An earlier version has not written it.
		b.change(true, func(o testObject) { (*podsOf(o)).ObservedGeneration = 0 })
		after(interval)
		b.wantWrites(write{time.Hour + 2*time.Minute + 1999*ms, "2/2 ready on node-1 (2)", ""})
		wantGeneration(3)
	})
}

func TestAnotherProcessFindsNothingToWrite(t *testing.T) {
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

func TestAnotherProcessWritesAtOnceThatPodsAreGone(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.change(true, func(o testObject) {
			*podsOf(o) = &workloadv1alpha1.PodSummary{Summary: "1/1 ready on node-1", Total: 1}
		})
		b.start()
		b.wantWrites(write{0, "none", ""})
	})
}

func TestAnObjectIsGivenAnIntervalToGetPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		b.change(true, touch)
		after(999 * ms)
		b.wantWrites()
		after(1 * ms)
		b.wantWrites(write{1000 * ms, "none", ""})
		after(time.Hour)
		b.wantWrites()

		// That it has none any more is written as anything else.
		b.set(b.pod("a", true))
		b.wantWrites(write{time.Hour + 1000*ms, "1/1 ready on node-1", ""})
		after(time.Hour)
		b.deletePod("a")
		b.wantWrites(write{2*time.Hour + 1000*ms, "none", ""})
	})
}

func TestAnObjectThatGetsPodsInTimeNeverHadNone(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.start()
		after(500 * ms)
		b.set(b.pod("a", true))
		after(500 * ms)
		if made := b.objects.made(); len(made) != 1 || made[0].Summary != "1/1 ready on node-1" {
			b.Errorf("written was %v, want the Pod only", made)
		}
	})
}

func TestWhatIsNotToBeWritten(t *testing.T) {
	for name, change := range map[string]func(testObject){
		"undecodable": func(o testObject) {
			o.SetAnnotations(map[string]string{tolerant.AnnotationDecodeError: "spec.deploymentName: array where string is expected"})
		},
		// The Deployment that there is belongs to one of before.
		"another of that name": func(o testObject) {
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

// recreate deletes the object, and later adds another of its name, whose Pods are summarized
// as given.
func (b *bubble) recreate(gap time.Duration, pods *workloadv1alpha1.PodSummary) {
	next := b.objects.object("default", "example")
	b.objects.Delete(next.DeepCopyObject())
	after(gap)
	next.SetUID("uid-another")
	*podsOf(next) = pods
	b.objects.Add(next)
}

func TestRestOfADeletedObject(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(100 * ms)
		b.recreate(100*ms, &workloadv1alpha1.PodSummary{Summary: "none"}) // as restored from a backup
		after(100 * ms)
		b.wantWrites()

		// The next object of that name is not throttled because the last one was written.
		b.owner.UID = "uid-another"
		b.set(deployment(b.metadata("web", b.owner)))
		b.wantWrites(write{300 * ms, "1/1 ready on node-1", ""})
	})
}

func TestNextObjectOfANameIsGivenAnIntervalToGetPods(t *testing.T) {
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

// Somebody gives the object a Deployment whose Pods lack the label by which they are watched.
func TestAnObjectWhosePodsAreNotWatchedHasNoSummary(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(b.pod("a", true))
		b.start()
		b.wantWrites(write{0, "1/1 ready on node-1", ""})
		after(2 * time.Second)
		adopted := deployment(b.metadata("adopted", b.owner))
		adopted.Spec.Selector.MatchLabels = map[string]string{"app": "adopted"}
		b.set(adopted)
		b.wantWrites(write{2000 * ms, noSummary, ""})
		after(time.Hour)
		b.wantWrites()
		b.set(deployment(b.metadata("adopted"))) // and takes it away again
		b.wantWrites(write{time.Hour + 2000*ms, "1/1 ready on node-1", ""})
	})
}

func TestAnObjectWhosePodsWereNeverWatchedGetsNoSummary(t *testing.T) {
	inBubble(t, func(b *bubble) {
		adopted := deployment(b.metadata("web", b.owner))
		adopted.Spec.Selector.MatchLabels = map[string]string{"app": "adopted"}
		b.set(adopted)
		b.start()
		after(time.Hour)
		b.wantWrites()
	})
}

// A finalizer holds an object in deletion, and its Pods come and go.
func TestAnObjectInDeletionIsSummarized(t *testing.T) {
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
