// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/managertest"
)

// Steps of tests about the Pod a.
func add(p *program)         { p.Create(p.podOf("web-1", "a", "node-1")) }
func addUnplaced(p *program) { p.Create(p.podOf("web-1", "a", "")) }
func remove(p *program) {
	p.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
}
func fail(p *program)     { p.pod("a", inPhase(corev1.PodFailed)) }
func unlabel(p *program)  { p.pod("a", func(pod *corev1.Pod) { delete(pod.Labels, "controller") }) }
func relabel(p *program)  { p.pod("a", func(pod *corev1.Pod) { pod.Labels["controller"] = "example" }) }
func loseLead(p *program) { p.LoseLead() }
func lead(p *program)     { p.Lead() }
func rename(p *program) {
	p.icecream(func(i *icecreamv1alpha1.Icecream) { i.Spec.DeploymentName = "other" })
}

func removeReplicaSet(p *program) {
	p.Delete(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}})
}

func removeDeployment(p *program) {
	p.Delete(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
}

func recreateIcecream(p *program) {
	p.Delete(example())
	p.Create(example())
}

// replaceDeployment deletes the Deployment without its ReplicaSet, which the next Deployment adopts.
func replaceDeployment(p *program) {
	removeDeployment(p)
	p.settle()
	adopted := p.replicaSetOf("web")
	managertest.Update(p.Env, "default", adopted.Name,
		func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = adopted.OwnerReferences })
}

// deleteIcecream deletes the Icecream, which a finalizer holds.
func deleteIcecream(p *program) {
	p.icecream(func(i *icecreamv1alpha1.Icecream) { i.Finalizers = []string{"example.com/hold"} })
	p.Delete(example())
}

// forgetRecords does what another leader does about a Pod that has ended.
func forgetRecords(p *program) {
	p.icecream(func(i *icecreamv1alpha1.Icecream) { i.Status.Placements = nil })
}

// refusing returns a step that takes others while the API server refuses writes of the resource.
func refusing(prefix string, steps ...func(*program)) func(*program) {
	return func(p *program) {
		p.BeforeWrite(func(write string, _ *http.Request) error {
			if len(write) >= len(prefix) && write[:len(prefix)] == prefix {
				return apierrors.NewInternalError(http.ErrHandlerTimeout)
			}
			return nil
		})
		for _, step := range steps {
			step(p)
			p.Settle()
		}
		p.BeforeWrite(nil)
	}
}

// A Pod may end between two calls for its Icecream. A finished Pod is not recorded, so its missing record does
// not show that it was not logged.
func TestPodThatEndsIsLoggedOnce(t *testing.T) {
	type steps = []func(*program)
	for name, test := range map[string]struct {
		steps steps
		lines int
	}{
		"it came and went":                           {steps{during(add, remove)}, 1},
		"it failed before it was logged":             {steps{during(add, fail)}, 1},
		"it failed and went before it was logged":    {steps{during(add, fail, remove)}, 1},
		"it failed before it was logged, then went":  {steps{during(add, fail), remove}, 1},
		"it went after it was recorded":              {steps{add, remove}, 1},
		"it failed and went after it was recorded":   {steps{add, fail, remove}, 1},
		"it went during a call":                      {steps{add, during(remove)}, 1},
		"it failed and went during a call":           {steps{add, during(fail, remove)}, 1},
		"it went before its record was written":      {steps{func(p *program) { add(p); p.Settle(); remove(p) }}, 1},
		"it went while the status was refused":       {steps{refusing("patch icecreams", add, remove)}, 1},
		"it failed while the status was refused":     {steps{refusing("patch icecreams", add, fail)}, 1},
		"it went while the Deployment was refused":   {steps{refusing("patch deployments", scale, add, remove), wait}, 1},
		"it failed while the Deployment was refused": {steps{refusing("patch deployments", scale, add, fail), wait}, 1},
		"its label was restored":                     {steps{add, unlabel, relabel, unlabel, relabel}, 1},
		"it failed, then its label was restored":     {steps{add, fail, unlabel, relabel}, 1},
		"it was never placed":                        {steps{during(addUnplaced, remove)}, 0},
		"its ReplicaSet is gone":                     {steps{during(add, removeReplicaSet, remove)}, 0},
		"its Deployment is gone, too":                {steps{during(add, remove, removeDeployment)}, 1},
		"its Deployment is a former one":             {steps{rename, during(add, remove)}, 0},
		"its Deployment was replaced":                {steps{add, replaceDeployment}, 1},
		"it came after its Icecream was deleted":     {steps{deleteIcecream, add}, 1},
		"the Icecream was re-created":                {steps{during(add, remove, recreateIcecream)}, 1}, // by the call for the first one
		"it failed, then another process led":        {steps{add, fail, loseLead, lead}, 1},
		"another process led, then it failed":        {steps{add, loseLead, lead, fail}, 1},
		"it failed while there was no leader":        {steps{loseLead, add, fail, lead}, 0},
		"another leader removed its record":          {steps{add, during(remove, loseLead), forgetRecords, lead}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(p *program) {
				for _, step := range test.steps {
					step(p)
					p.settle()
				}
				if lines := p.log.lines(); len(lines) != test.lines {
					p.Errorf("lines %q, want %d", lines, test.lines)
				}
			})
		})
	}
}

// wait lets the backoff of failed writes end.
func wait(*program) { time.Sleep(time.Minute) }

func scale(p *program) {
	p.icecream(func(i *icecreamv1alpha1.Icecream) { i.Spec.Replicas = new(int32) })
}

func TestPodsThatEndTogetherAreLogged(t *testing.T) {
	run(t, func(p *program) {
		b := p.podOf("web-1", "b", "node-2")
		p.during(add, fail, func(p *program) { p.Create(b) }, func(p *program) { p.Delete(b) })
		p.wantLines(line("a", "node-1"), line("b", "node-2"))
		p.wantPlacements()
	})
}

// A Pod that is replaced by one of the same name ends, too, even if no event shows that it was deleted.
func TestReplacedPodEnds(t *testing.T) {
	before := newPod("a", "node-1", 1)
	if !isGone(before, newPod("a", "node-1", 1, withUID("uid-again"))) || !isGone(before, nil) {
		t.Error("isGone() = false, want true")
	}
	if isGone(nil, before) || isGone(before, newPod("a", "node-2", 2)) {
		t.Error("isGone() of a Pod that exists = true, want false")
	}
}

// Other changes of a Pod must not enqueue its Icecream.
func TestOnlyMovedPodEnqueuesIcecream(t *testing.T) {
	p := &placements{}
	before := newPod("a", "node-1", 1)
	if p.movesOrEnds(before, newPod("a", "node-1", 1, inPhase(corev1.PodRunning))) {
		t.Error("movesOrEnds() of an unmoved Pod = true, want false")
	}
	if !p.movesOrEnds(newPod("a", "", 1), before) || !p.movesOrEnds(nil, before) {
		t.Error("movesOrEnds() of a placed Pod = false, want true")
	}
}
