// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
)

// reasonPodsScheduled is the reason of the Event about placed Pods.
const reasonPodsScheduled = "PodsScheduled"

// maxGone is the number of remembered Pods that finished, or left the cache or their owner, and the number of
// those of one Icecream that ended since its last sync.
const maxGone = 10000

// placementLog logs each placement once. It knows from the statuses which are logged, and
// remembers those that no status records. It is safe for concurrent use.
type placementLog struct {
	// logger has no values of its own, because users search for lines that begin with "Pod
	// scheduled" icecream=.
	logger   klog.Logger
	recorder record.EventRecorder

	mutex   sync.Mutex
	leading bool                         // see term
	byKey   map[cache.ObjectName]*memory // of those with something to remember
	// orphaned has, for each Icecream, the recorded Pods whose owner chain does not lead to it.
	// Nothing else shows which Icecream to enqueue when they are gone.
	orphaned map[cache.ObjectName]sets.Set[types.UID]
	// gone has the logged Pods that finished or no longer belong to the Icecream. One that
	// still exists may come back if only its label or its owner reference was removed.
	gone *lru.Cache
}

// memory is what is remembered of an Icecream.
type memory struct {
	uid types.UID
	// unrecorded are the logged Pods that its status does not record, or will no longer
	// record after the last sync.
	unrecorded sets.Set[types.UID]
	// ended are Pods that ended since the last sync, and may not be logged.
	ended []ended
}

// ended is a Pod that has finished or is gone.
type ended struct {
	icecream   types.UID
	deployment string // its name
	placement  icecreamv1alpha1.Placement
}

// podOf identifies a Pod of an Icecream.
type podOf struct{ icecream, pod types.UID }

func newPlacementLog(logger klog.Logger, recorder record.EventRecorder) *placementLog {
	return &placementLog{
		logger: logger, recorder: recorder,
		byKey: map[cache.ObjectName]*memory{}, orphaned: map[cache.ObjectName]sets.Set[types.UID]{}, gone: lru.New(maxGone),
	}
}

// sync logs the placements of the Icecream that are not logged yet. reported is the name of the Deployment that
// the status describes, "" if there is none. placements are those of its Pods, sorted. orphaned has the UIDs of those
// Pods whose owner chain does not lead to the Icecream.
func (l *placementLog) sync(
	icecream *icecreamv1alpha1.Icecream, reported string, placements []icecreamv1alpha1.Placement,
	orphaned sets.Set[types.UID],
) {
	l.log(icecream, l.remember(icecream, reported, placements, orphaned))
}

// remember returns the placements to log, and remembers them.
func (l *placementLog) remember(
	icecream *icecreamv1alpha1.Icecream, reported string, placements []icecreamv1alpha1.Placement,
	orphaned sets.Set[types.UID],
) (unlogged []icecreamv1alpha1.Placement) {
	recorded := podUIDs(icecream.Status.Placements)
	unrecorded := sets.New[types.UID]()

	l.mutex.Lock()
	defer l.mutex.Unlock()
	m := l.memoryOf(icecream)
	unlogged = l.missed(icecream, m, reported, recorded)
	_, omitted := newest(placements)
	for i, p := range placements {
		if !recorded.Has(p.PodUID) || i < int(omitted) {
			unrecorded.Insert(p.PodUID)
		}
		if !recorded.Has(p.PodUID) && !m.unrecorded.Has(p.PodUID) && !l.isGone(icecream.UID, p.PodUID) {
			unlogged = append(unlogged, p)
		}
		recorded.Delete(p.PodUID)
		m.unrecorded.Delete(p.PodUID)
	}
	for pod := range recorded.Union(m.unrecorded) { // finished, or no longer the Icecream's
		l.gone.Add(podOf{icecream.UID, pod}, nil)
	}
	key := cache.MetaObjectToName(icecream)
	delete(l.byKey, key)
	if len(unrecorded) > 0 {
		l.byKey[key] = &memory{uid: icecream.UID, unrecorded: unrecorded}
	}
	delete(l.orphaned, key)
	if len(orphaned) > 0 {
		l.orphaned[key] = orphaned
	}
	return unlogged
}

// memoryOf returns what is remembered of the Icecream. The caller holds the mutex.
func (l *placementLog) memoryOf(icecream *icecreamv1alpha1.Icecream) *memory {
	m := l.byKey[cache.MetaObjectToName(icecream)]
	switch {
	case m == nil:
		return &memory{}
	case m.uid != icecream.UID: // of an earlier one, or noted before the first sync
		return &memory{ended: m.ended}
	}
	return m
}

// missed returns the placements of Pods that ended before they were logged. Those of a former Deployment are
// not the Icecream's. The caller holds the mutex.
func (l *placementLog) missed(
	icecream *icecreamv1alpha1.Icecream, m *memory, reported string, recorded sets.Set[types.UID],
) (missed []icecreamv1alpha1.Placement) {
	for _, e := range m.ended {
		pod := e.placement.PodUID
		isKnown := recorded.Has(pod) || m.unrecorded.Has(pod) || l.isGone(icecream.UID, pod)
		// The Deployment may be gone by now.
		isReported := e.deployment == icecream.Spec.DeploymentName || e.deployment == reported
		if !isKnown && isReported && e.icecream == icecream.UID {
			l.gone.Add(podOf{icecream.UID, pod}, nil)
			missed = append(missed, e.placement)
		}
	}
	return missed
}

// term lets [placementLog.end] note Pods until ctx ends, which is the end of the term. Notes are not kept for
// the next term: another leader may have removed the record of a noted Pod until then, so nothing would show
// that it was logged.
func (l *placementLog) term(ctx context.Context, _ func(cache.ObjectName)) error {
	l.setLeading(true)
	defer l.setLeading(false)
	<-ctx.Done()
	return nil
}

func (l *placementLog) setLeading(leading bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.leading = leading
	for key, m := range l.byKey {
		if m.ended = nil; len(m.unrecorded) == 0 {
			delete(l.byKey, key)
		}
	}
}

// end remembers a Pod of an Icecream that has finished or is gone, until the next sync.
func (l *placementLog) end(key cache.ObjectName, e ended) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.leading {
		return
	}
	m := l.byKey[key]
	if m == nil {
		m = &memory{}
		l.byKey[key] = m
	}
	if len(m.ended) < maxGone {
		m.ended = append(m.ended, e)
	}
}

// recordedBy returns the keys of the Icecreams that record a Pod whose owner chain does not
// lead to them.
func (l *placementLog) recordedBy(pod types.UID) []cache.ObjectName {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var keys []cache.ObjectName
	for key, pods := range l.orphaned {
		if pods.Has(pod) {
			keys = append(keys, key)
		}
	}
	return keys
}

// forget forgets an Icecream that is gone.
func (l *placementLog) forget(key cache.ObjectName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.byKey, key)
	delete(l.orphaned, key)
}

func (l *placementLog) isGone(icecream, pod types.UID) bool {
	_, ok := l.gone.Get(podOf{icecream, pod})
	return ok
}

// log writes a line for each placement, and one Event for all of them.
func (l *placementLog) log(icecream *icecreamv1alpha1.Icecream, placed []icecreamv1alpha1.Placement) {
	if len(placed) == 0 {
		return
	}
	for _, p := range placed {
		l.logger.Info("Pod scheduled", "icecream", klog.KObj(icecream), "pod", klog.KRef(icecream.Namespace, p.Pod), "node", p.Node)
	}
	l.recorder.Event(icecream, corev1.EventTypeNormal, reasonPodsScheduled, summary(placed))
}

// summary returns the message of the Event: how many Pods were placed, and on which nodes.
func summary(placed []icecreamv1alpha1.Placement) string {
	if len(placed) == 1 {
		return fmt.Sprintf("Pod %s was placed on %s", placed[0].Pod, placed[0].Node)
	}
	const most = 5
	nodes := sets.New[string]()
	for _, p := range placed {
		nodes.Insert(p.Node)
	}
	names := sets.List(nodes)
	others := ""
	if len(names) > most {
		others = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf("%d Pods were placed on %s%s", len(placed), strings.Join(names, ", "), others)
}
