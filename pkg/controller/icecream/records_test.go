// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/managertest"
)

func TestOrphanedPodKeepsRecordWhileItExists(t *testing.T) {
	for name, set := range map[string]func(p *program, owners []metav1.OwnerReference) (before []metav1.OwnerReference){
		"Pod":        setOwners[*corev1.Pod]("a"),
		"ReplicaSet": setOwners[*appsv1.ReplicaSet]("web-1"),
		"Deployment": setOwners[*appsv1.Deployment]("web"),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(p *program) {
				add(p)
				p.settle()
				p.wantLines(line("a", "node-1"))
				owners := set(p, nil)
				p.settle()
				p.wantPlacements("a")
				set(p, owners)
				p.settle()
				p.wantPlacements("a")
				set(p, nil)
				p.settle()
				remove(p)
				p.settle()
				p.wantPlacements()
				p.wantLines()
			})
		})
	}
}

func setOwners[T managertest.Object](name string) func(*program, []metav1.OwnerReference) []metav1.OwnerReference {
	return func(p *program, owners []metav1.OwnerReference) (before []metav1.OwnerReference) {
		managertest.Update(p.Env, "default", name, func(o T) {
			before = o.GetOwnerReferences()
			o.SetOwnerReferences(owners)
		})
		return before
	}
}

// TestForeignRecordsAreCorrected edits the placements as another client, such as one that restores a backup.
func TestForeignRecordsAreCorrected(t *testing.T) {
	run(t, func(p *program) {
		add(p)
		p.Create(p.podOf("web-1", "b", "node-2"))
		p.settle()
		p.wantLines(line("a", "node-1"), line("b", "node-2"))
		for _, edit := range []func(*icecreamv1alpha1.Icecream){
			func(i *icecreamv1alpha1.Icecream) {
				i.Status.Placements = slices.Insert(i.Status.Placements, 1, placement("restored", "node-9", 1))
			},
			func(i *icecreamv1alpha1.Icecream) { slices.Reverse(i.Status.Placements) },
			func(i *icecreamv1alpha1.Icecream) { i.Status.Placements[0].Node = "node-9" },
			func(i *icecreamv1alpha1.Icecream) { i.Status.Placements, i.Status.PlacementsOmitted = nil, 7 },
		} {
			want, _ := managertest.Get[*icecreamv1alpha1.Icecream](p.Env, "default", "example")
			p.icecream(edit)
			p.settle()
			got, _ := managertest.Get[*icecreamv1alpha1.Icecream](p.Env, "default", "example")
			if diff := cmp.Diff(want.Status, got.Status); diff != "" {
				p.Errorf("status (-want +got):\n%s", diff)
			}
		}
		p.log.lines() // without a record, a Pod may be logged again
	})
}

func TestRecordsAreExplained(t *testing.T) {
	run(t, func(p *program) {
		add(p)
		p.settle()
		e, err := p.controller.(controller.Explainer).Explain(cache.NewObjectName("default", "example"))
		want := controller.Fact{Name: "recorded placements", Wanted: "1", Actual: "1"}
		if err != nil || !slices.Contains(e.Facts, want) {
			p.Errorf("facts %+v, %v, want %+v", e.Facts, err, want)
		}
	})
}

// TestReplacedPodsCostOneWriteASecond replaces Pods ten times a second, so that the records change and
// the readiness flaps.
func TestReplacedPodsCostOneWriteASecond(t *testing.T) {
	run(t, func(p *program) {
		add(p)
		p.settle()
		p.Writes()
		for i := range 30 {
			p.Create(p.podOf("web-1", podName(i), "node-1"))
			managertest.Update(p.Env, "default", "web", func(d *appsv1.Deployment) {
				d.Status.ObservedGeneration = d.Generation
				d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 1, 1, int32(i%2)
			})
			if i > 0 {
				p.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName(i - 1)}})
			}
			time.Sleep(100 * time.Millisecond)
		}
		if writes := p.Writes(); len(writes) < 3 || len(writes) > 5 {
			t.Errorf("%d writes in 3 s, want 3 to 5: %q", len(writes), writes)
		}
		p.settle()
		p.wantPlacements("a", podName(29))
	})
}
