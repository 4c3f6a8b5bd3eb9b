// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

const (
	// quickCorrections is how many times replicas are corrected at once.
	quickCorrections = 5
	// contestPeriod is how far apart corrections are after that. Twice as long
	// without one and the contest is over.
	contestPeriod = 10 * time.Second
)

// contests remembers how often the replicas of Deployments were corrected. Two
// writers that both own the replicas, such as a parent that declares them and an
// autoscaler, would otherwise correct each other as fast as they can. It is lost
// with the process; a new one counts anew.
type contests struct {
	mutex    sync.Mutex
	byParent map[types.UID]contest
	swept    time.Time
}

// contest is what is remembered of one parent.
type contest struct {
	generation int64     // of the parent: with a new one it wants something new
	count      int       // of corrections, each soon after the one before
	last       time.Time // of them
	rival      string    // whose value was corrected last
}

func (c contest) over(p Parent, now time.Time) bool {
	return c.generation != p.GetGeneration() || now.Sub(c.last) >= 2*contestPeriod
}

// of returns the contest over the parent's replicas: whether to hold back another
// correction, what to say of it, nil if there is none, and when to look again.
func (c *contests) of(p Parent, now time.Time) (hold bool, obstacle *Obstacle, again time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	contest, ok := c.byParent[p.GetUID()]
	if !ok || contest.over(p, now) || contest.count < quickCorrections {
		return false, nil, 0
	}
	elapsed := now.Sub(contest.last)
	hold = elapsed < contestPeriod
	again = 2*contestPeriod - elapsed
	if hold {
		again = contestPeriod - elapsed
	}
	return hold, &Obstacle{
		Reason: workloadv1alpha1.ReasonReplicasContested,
		Message: fmt.Sprintf("spec.replicas of Deployment %q is also set by %s: leave spec.replicas of %s out, or stop the other writer; until then it is corrected once in %v",
			p.DeploymentName, contest.rival, p, contestPeriod),
		Passes: true,
	}, again
}

// corrected notes that the replicas of live were corrected.
func (c *contests) corrected(p Parent, live *appsv1.Deployment, fieldManager string, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sweep(now)
	contest := c.byParent[p.GetUID()]
	if contest.over(p, now) {
		contest.count = 0
	}
	contest.generation, contest.last, contest.rival = p.GetGeneration(), now, rivalOf(live, fieldManager)
	contest.count++
	c.byParent[p.GetUID()] = contest
}

// sweep forgets now and then those that are over.
func (c *contests) sweep(now time.Time) {
	if c.byParent == nil {
		c.byParent = map[types.UID]contest{}
	}
	if now.Sub(c.swept) < 2*contestPeriod {
		return
	}
	c.swept = now
	maps.DeleteFunc(c.byParent, func(_ types.UID, contest contest) bool { return now.Sub(contest.last) >= 2*contestPeriod })
}

// rivalOf names the field manager, other than ours, that set the Deployment's
// replicas last.
func rivalOf(live *appsv1.Deployment, fieldManager string) string {
	rival, last := "an unknown writer", metav1.Time{}
	for _, entry := range live.ManagedFields {
		if managesReplicas(entry) && entry.Manager != fieldManager && (entry.Time == nil || !entry.Time.Before(&last)) {
			rival = fmt.Sprintf("field manager %q", entry.Manager)
			if entry.Time != nil {
				last = *entry.Time
			}
		}
	}
	return rival
}

// managesReplicas tells whether spec.replicas belongs to the field manager.
func managesReplicas(entry metav1.ManagedFieldsEntry) bool {
	if entry.Subresource == "status" {
		return false // there is a status.replicas too
	}
	// What Trim has left is one that does.
	return entry.FieldsV1 == nil || bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:replicas":{}`))
}
