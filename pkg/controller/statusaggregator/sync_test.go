// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/managertest"
)

const ms = time.Millisecond

func TestFirstChangeIsWrittenAtOnceAndLastAlways(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")

		after(200 * ms)
		b.ready("a", false)
		after(300 * ms)
		b.pod("b", true)
		after(499 * ms)
		b.wantWrites("")
		after(1 * ms)
		b.wantWrites("1/2 ready on node-1 (2)")

		// Each write begins an interval.
		after(999 * ms)
		b.ready("a", true)
		b.wantWrites("")
		after(1 * ms)
		b.wantWrites("2/2 ready on node-1 (2)")

		// After an interval without a change, the next change is written at once again.
		after(1500 * ms)
		b.wantWrites("")
		b.ready("b", false)
		b.wantWrites("1/2 ready on node-1 (2)")
		after(2000 * ms)
		b.deletePod("b")
		b.wantWrites("1/1 ready on node-1")
		after(time.Minute)
		b.wantWrites("")
	})
}

func TestUnchangedSummaryIsNotWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")

		// A change that is reverted within the interval.
		b.ready("a", false)
		after(500 * ms)
		b.ready("a", true)
		after(time.Minute)
		// A change by the user, and a change of a Pod that does not affect the summary.
		b.change(touch)
		managertest.Update(b.Env, "default", "a", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "1"} })
		after(time.Minute)
		b.wantWrites("")
	})
}

// touch enqueues an object by an irrelevant change.
func touch(o managertest.Object) { o.SetAnnotations(map[string]string{"touched": "true"}) }

// setImage changes the spec, and so the generation.
func setImage(image string) func(managertest.Object) {
	return func(o managertest.Object) {
		if foo, ok := o.(*samplev1alpha1.Foo); ok {
			foo.Spec.Image = image
		} else {
			o.(*icecreamv1alpha1.Icecream).Spec.Image = image
		}
	}
}

// Readers see from it whether the summary predates the last change of the spec.
func TestGenerationIsWrittenWithPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		wantGeneration := func(want int64) {
			b.Helper()
			if got := statusOf(b.object()).Pods.ObservedGeneration; got != want {
				b.Errorf("the summary is of generation %d, want %d", got, want)
			}
		}
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		wantGeneration(1)

		// Pods that change soon after cost no extra write.
		after(time.Minute)
		b.change(setImage("nginx:2"))
		after(999 * ms)
		b.wantWrites("")
		wantGeneration(1)
		b.pod("b", true)
		b.wantWrites("2/2 ready on node-1 (2)")
		wantGeneration(2)

		// If they do not change, the write happens after the grace period.
		after(time.Minute)
		b.change(setImage("nginx:3"))
		after(500 * ms)
		b.change(touch)
		after(499 * ms)
		b.wantWrites("")
		after(1 * ms)
		b.wantWrites("2/2 ready on node-1 (2)")
		wantGeneration(3)
		after(time.Minute)
		b.wantWrites("")

		// An earlier version of the daemon did not write the generation.
		b.change(func(o managertest.Object) { statusOf(o).Pods.ObservedGeneration = 0 })
		after(time.Second)
		b.wantWrites("2/2 ready on node-1 (2)")
		wantGeneration(3)
	})
}

func TestNextProcessReportsMissingPodsAtOnce(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.LoseLead()
		b.change(func(o managertest.Object) {
			statusOf(o).Pods = &workloadv1alpha1.PodSummary{
				Summary: "1/1 ready on node-1", Total: 1, Nodes: []workloadv1alpha1.NodeSummary{}, Problems: []workloadv1alpha1.PodProblem{},
			}
		})
		b.Lead()
		b.wantWrites("none")
		b.LoseLead()
		b.Lead()
		after(time.Minute)
		b.wantWrites("") // the next process finds nothing to write
	})
}

func TestNewObjectHasGracePeriodToGetPods(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.change(touch)
		after(999 * ms)
		b.wantWrites("")
		after(1 * ms)
		b.wantWrites("none")
		after(time.Minute)
		b.wantWrites("")

		// The removal of all Pods is written like any other change.
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		after(time.Minute)
		b.deletePod("a")
		b.wantWrites("none")
	})
}

func TestPodsWithinGracePeriodSaveOneWrite(t *testing.T) {
	inBubble(t, func(b *bubble) {
		after(500 * ms)
		b.pod("a", true)
		after(500 * ms)
		b.wantWrites("1/1 ready on node-1")
	})
}

// recreate deletes the object and creates another of the same name, with the given summary.
func (b *bubble) recreate(summary *workloadv1alpha1.PodSummary) {
	next := b.object()
	b.Delete(next)
	after(100 * ms)
	next.SetUID("")
	next.SetResourceVersion("")
	statusOf(next).Pods = summary
	b.Create(next)
}

// The Pods belong to the Deployment of an earlier object, until the garbage collector deletes it.
func TestRecreatedObject(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		after(100 * ms)
		b.recreate(nil)
		after(500 * ms)
		b.wantWrites("")

		// The new object is not throttled by the write of the old one.
		b.CollectGarbage()
		b.deploy()
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")

		// It has a grace period to get Pods.
		after(2 * time.Second)
		b.recreate(nil)
		after(999 * ms)
		b.wantWrites("")
		after(1 * ms)
		b.wantWrites("none")
	})
}

// Somebody replaces the Deployment by one whose Pods lack the watched label.
func TestUnwatchedPodsRemoveSummary(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		after(2 * time.Second)
		managertest.Update(b.Env, "default", "web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		b.wantWrites("none")
		after(2 * time.Second)
		adopted := deployment("web")
		b.Delete(adopted)
		owner := b.object()
		adopted.OwnerReferences = controlledBy(owner, b.kind)
		adopted.Spec.Selector.MatchLabels = map[string]string{"app": "adopted"}
		b.Create(adopted)
		b.wantWrites(noSummary)
		b.change(func(o managertest.Object) { statusOf(o).Pods = &workloadv1alpha1.PodSummary{Summary: "restored"} })
		after(2 * time.Second)
		b.wantWrites(noSummary)
		after(time.Minute)
		b.wantWrites("")
	})
}

// A finalizer holds an object in deletion, and its Pods still change.
func TestObjectInDeletionIsSummarized(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.pod("a", true)
		b.wantWrites("1/1 ready on node-1")
		after(2 * time.Second)
		b.change(func(o managertest.Object) { o.SetFinalizers([]string{"example.com/hold"}) })
		b.Delete(b.object())
		after(0)
		b.deletePod("a")
		b.wantWrites("none")
		after(time.Minute)
		b.wantWrites("")
	})
}

// The other controller of the kind writes its part of the status just before the aggregator does.
func TestStatusIsShared(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.BeforeWrite(func(string, *http.Request) error {
			b.BeforeWrite(nil)
			b.change(func(o managertest.Object) { statusOf(o).AvailableReplicas = 3 })
			return nil
		})
		b.pod("a", true)
		after(time.Minute)
		writes := b.Writes()
		if len(writes) != 2 || !strings.HasSuffix(writes[0], ": Conflict") {
			b.Errorf("writes %q, want a conflict and a retry", writes)
		}
		if status := statusOf(b.object()); status.AvailableReplicas != 3 || status.Pods == nil || status.Pods.Total != 1 {
			b.Errorf("status %+v, want the parts of both", status)
		}
	})
}

func TestDeniedSummaryIsReported(t *testing.T) {
	inBubble(t, func(b *bubble) {
		denied := apierrors.NewInvalid(b.kind.GroupKind(), "example", field.ErrorList{
			field.Required(field.NewPath("status", "pods", "other"), "by another version of the CRD"),
		})
		b.BeforeWrite(func(string, *http.Request) error { return denied })
		b.pod("a", true)
		after(time.Minute)
		events := b.Events()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning WriteDenied writing the status of "+b.kind.Kind+" default/example") {
			b.Errorf("Events %q, want one about the denied write", events)
		}
		b.BeforeWrite(nil)
		b.Writes()
		after(6 * time.Minute)
		b.wantWrites("1/1 ready on node-1")
	})
}

// Without an interval, nothing syncs an object after its write.
func TestChangeDuringWriteIsNotLostWithoutInterval(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.Settle()
		b.Writes()
		b.BeforeWrite(func(string, *http.Request) error {
			b.BeforeWrite(nil)
			b.ready("a", true)
			return nil
		})
		b.pod("a", false)
		after(time.Minute)
		writes, summary := b.Writes(), statusOf(b.object()).Pods.Summary
		if len(writes) != 2 || summary != "1/1 ready on node-1" {
			b.Errorf("writes %q and summary %q, want the last state", writes, summary)
		}
	}, "--status-aggregation-interval=0")
}

// A failed write does not throttle the object.
func TestFailedWriteIsRetried(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.BeforeWrite(func(string, *http.Request) error {
			b.BeforeWrite(nil)
			return apierrors.NewInternalError(errors.New("down"))
		})
		b.pod("a", true)
		after(100 * ms)
		if writes := b.Writes(); len(writes) != 2 || statusOf(b.object()).Pods == nil {
			b.Errorf("writes %q, want a failure and a retry", writes)
		}
	})
}
