// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// Ways to cut and restore the owner chain between an Icecream and its Pod.
var cuts = map[string]struct{ cut, restore func(*fixture) }{
	"the Pod is orphaned": {
		func(f *fixture) { f.add(newPod("a", "node-1", 1, orphaned)) },
		func(f *fixture) { f.add(newPod("a", "node-1", 1)) },
	},
	"the ReplicaSet is orphaned": {
		func(f *fixture) { f.put(f.replicaSets, replicaSetOf(nil)) },
		func(f *fixture) { f.put(f.replicaSets, replicaSetOf(deploymentOf("uid-web", "uid-example"))) },
	},
	"the Deployment is deleted without its ReplicaSet, which another adopts": {
		func(f *fixture) {
			f.put(f.replicaSets, replicaSetOf(nil))
			f.deployments.Replace(nil, "")
		},
		func(f *fixture) {
			d := deploymentOf("uid-web-2", "uid-example")
			f.put(f.deployments, d)
			f.put(f.replicaSets, replicaSetOf(d))
		},
	},
	"the Deployment is orphaned": {
		func(f *fixture) { f.put(f.deployments, deploymentOf("uid-web", "")) },
		func(f *fixture) { f.put(f.deployments, deploymentOf("uid-web", "uid-example")) },
	},
	"the Deployment gets another owner": {
		func(f *fixture) { f.put(f.deployments, deploymentOf("uid-web", "uid-other")) },
		func(f *fixture) { f.put(f.deployments, deploymentOf("uid-web", "uid-example")) },
	},
}

func TestRestoredOwnerChainRepeatsNoLine(t *testing.T) {
	for name, test := range cuts {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add(newPod("a", "node-1", 1))
			f.sync()
			f.wantLines(line("a", "node-1"))
			for _, between := range []func(){func() {}, f.restart} {
				test.cut(f)
				f.sync()
				between()
				if f.sync() {
					t.Error("an unchanged status was written again")
				}
				f.wantPlacements(placement("a", "node-1", 1))
				test.restore(f)
				f.sync()
				f.wantPlacements(placement("a", "node-1", 1))
				f.wantLines()
			}
		})
	}
}

// A Pod without the label leaves the cache, so the daemon does not know whether it still
// exists.
func TestRestoredLabelRepeatsNoLine(t *testing.T) {
	f := newFixture(t)
	a := newPod("a", "node-1", 1)
	f.add(a)
	f.sync()
	f.wantLines(line("a", "node-1"))
	away := func() {
		f.sync() // the cache has the record now
		f.remove(a)
		f.kind.departed(a)
		f.sync()
		f.wantPlacements()
	}
	back := func(want ...string) {
		t.Helper()
		f.add(a)
		f.sync()
		f.wantLines(want...)
		f.wantPlacements(placement("a", "node-1", 1))
	}
	for range 2 {
		away()
		back()
	}
	// Another process does not know, and logs again.
	away()
	f.restart()
	back(line("a", "node-1"))
}

// batch returns Pods that were placed in the same second.
func batch(first, end, second int) []*podrecord.Record {
	var pods []*podrecord.Record
	for i := first; i < end; i++ {
		pods = append(pods, newPod(podName(i), "node-1", second))
	}
	return pods
}

func TestEachPodIsLoggedOnceBeyondLimit(t *testing.T) {
	type step struct{ add, remove []*podrecord.Record }
	for name, steps := range map[string][]step{
		"in the same second":                        {{add: batch(500, 1000, 1)}, {add: batch(0, 500, 1)}},
		"by an API server with a slow clock":        {{add: batch(0, 600, 10)}, {add: batch(600, 700, 9)}},
		"older ones of a late adopted ReplicaSet":   {{add: batch(0, 600, 10)}, {add: batch(600, 700, 1)}},
		"newest deleted, older ones recorded again": {{add: manyPods(0, 700)}, {remove: manyPods(600, 700)}, {remove: manyPods(200, 600)}},
		"oldest deleted, as many added":             {{add: manyPods(0, 600)}, {remove: manyPods(0, 100)}, {add: manyPods(600, 700)}},
		"all deleted, then filled again":            {{add: manyPods(0, 600)}, {remove: manyPods(0, 600)}, {add: manyPods(600, 1300)}},
		"one by one around the limit":               {{add: manyPods(0, 499)}, {add: manyPods(499, 500)}, {add: manyPods(500, 501)}, {add: manyPods(501, 502)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			seen, want := map[string]int{}, 0
			for _, step := range steps {
				f.add(step.add...)
				f.remove(step.remove...)
				for _, pod := range step.remove {
					f.kind.departed(pod)
				}
				f.sync()
				f.sync()
				want += len(step.add)
				for _, line := range f.lines() {
					seen[line]++
				}
			}
			if len(seen) != want {
				t.Errorf("%d Pods logged, want %d", len(seen), want)
			}
			for line, n := range seen {
				if n != 1 {
					t.Errorf("%d lines %s, want 1", n, line)
				}
			}
		})
	}
}

// A new process cannot know which Pods beyond the limit were logged.
func TestNewProcessLogsUnrecordedPodsAgain(t *testing.T) {
	f := newFixture(t)
	f.add(manyPods(0, 503)...)
	f.sync()
	f.lines()
	f.restart()
	f.sync()
	f.wantLines(line(podName(0), "node-1"), line(podName(1), "node-1"), line(podName(2), "node-1"))
	f.sync()
	f.wantLines()
}

func orphaned(pod *corev1.Pod) { pod.OwnerReferences = nil }

// deploymentOf returns the Deployment of the fixture with the UID, owned by the Icecream
// with the other UID, if any.
func deploymentOf(uid, icecream string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metadata("web", &metav1.ObjectMeta{Name: "example", UID: "uid-example"}, kinds.Icecream.Kind)}
	d.UID = types.UID(uid)
	d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].UID = kinds.Icecream.GroupVersion().String(), types.UID(icecream)
	if icecream == "" {
		d.OwnerReferences = nil
	}
	return d
}

// replicaSetOf returns the ReplicaSet of the fixture, owned by the Deployment, if any.
func replicaSetOf(d *appsv1.Deployment) *metav1.PartialObjectMetadata {
	if d == nil {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", UID: "uid-web-1"}}
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metadata("web-1", d, "Deployment")}
}
