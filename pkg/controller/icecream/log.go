// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"fmt"
	"slices"
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
	"samplecontroller.io/controller-manager/tolerant"
)

// reasonPodsScheduled is the reason of the Event about placed Pods.
const reasonPodsScheduled = "PodsScheduled"

const (
	// maxUnrecorded is the number of Icecreams for which Pods that are logged but not
	// recorded are remembered. It is far above the number of Icecreams in a cluster.
	maxUnrecorded = 65536
	// maxGone is the number of remembered Pods that finished, or left the cache or their
	// owner.
	maxGone = 10000
)

// placementLog logs each placement once. It knows from the statuses which are logged, and
// remembers those that no status records. It is safe for concurrent use.
type placementLog struct {
	// logger has no values of its own, because users search for lines that begin with "Pod
	// scheduled" icecream=.
	logger    klog.Logger
	recorder  record.EventRecorder
	icecreams cache.TypedIndexer[*icecreamv1alpha1.Icecream]

	mutex sync.Mutex
	// unrecorded maps the UID of an Icecream to the UIDs of its logged Pods that its status
	// does not record, or will no longer record after the last sync.
	unrecorded *lru.Cache
	// gone has the logged Pods that finished or no longer belong to the Icecream. One that
	// still exists may come back if only its label or its owner reference was removed.
	gone *lru.Cache
	// cut has, for each Icecream, the recorded Pods whose owner chain does not lead to it.
	// Nothing else shows which Icecream to enqueue when they are gone.
	cut map[cache.ObjectName]sets.Set[types.UID]
}

// podOf identifies a Pod of an Icecream.
type podOf struct{ icecream, pod types.UID }

func newPlacementLog(logger klog.Logger, recorder record.EventRecorder, icecreams cache.TypedIndexer[*icecreamv1alpha1.Icecream]) *placementLog {
	return &placementLog{
		logger:     logger,
		recorder:   recorder,
		icecreams:  icecreams,
		unrecorded: lru.New(maxUnrecorded),
		gone:       lru.New(maxGone),
		cut:        map[cache.ObjectName]sets.Set[types.UID]{},
	}
}

// sync logs the placements of the Icecream that are not logged yet. placements are all of
// them, sorted. cut has the UIDs of those Pods whose owner chain does not lead to the
// Icecream.
func (l *placementLog) sync(icecream *icecreamv1alpha1.Icecream, placements []icecreamv1alpha1.Placement, cut sets.Set[types.UID]) {
	l.log(icecream, l.remember(icecream, placements, cut))
}

// remember returns the placements to log, and remembers them.
func (l *placementLog) remember(icecream *icecreamv1alpha1.Icecream, placements []icecreamv1alpha1.Placement, cut sets.Set[types.UID]) (unlogged []icecreamv1alpha1.Placement) {
	recorded := podUIDs(icecream.Status.Placements)
	unrecorded := sets.New[types.UID]()

	l.mutex.Lock()
	defer l.mutex.Unlock()
	before := l.unrecordedOf(icecream.UID)
	_, omitted := newest(placements)
	for i, p := range placements {
		if !recorded.Has(p.PodUID) || i < int(omitted) {
			unrecorded.Insert(p.PodUID)
		}
		if !recorded.Has(p.PodUID) && !before.Has(p.PodUID) && !l.isGone(icecream.UID, p.PodUID) {
			unlogged = append(unlogged, p)
		}
		recorded.Delete(p.PodUID)
		before.Delete(p.PodUID)
	}
	for pod := range recorded.Union(before) { // finished, or no longer the Icecream's
		l.gone.Add(podOf{icecream.UID, pod}, nil)
	}
	l.unrecorded.Remove(icecream.UID)
	if len(unrecorded) > 0 {
		l.unrecorded.Add(icecream.UID, unrecorded)
	}
	key := cache.MetaObjectToName(icecream)
	delete(l.cut, key)
	if len(cut) > 0 {
		l.cut[key] = cut
	}
	return unlogged
}

// departed logs the placement of a Pod that is finished or gone, unless it was logged before:
// the Pod may have come and gone between two syncs of its Icecream.
func (l *placementLog) departed(key cache.ObjectName, uid types.UID, p icecreamv1alpha1.Placement) {
	if icecream := l.missed(key, uid, p); icecream != nil {
		l.log(icecream, []icecreamv1alpha1.Placement{p})
	}
}

// missed returns the Icecream of a Pod that is finished or gone, nil if the placement was
// logged before.
func (l *placementLog) missed(key cache.ObjectName, uid types.UID, p icecreamv1alpha1.Placement) *icecreamv1alpha1.Icecream {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// This needs the lock: a sync forgets a Pod once the cached status records it.
	cached, exists, err := l.icecreams.GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	icecream := cached.(*icecreamv1alpha1.Icecream)
	if icecream.UID != uid || tolerant.DecodeError(icecream) != nil {
		return nil
	}
	recorded := slices.ContainsFunc(icecream.Status.Placements, func(r icecreamv1alpha1.Placement) bool { return r.PodUID == p.PodUID })
	if recorded || l.unrecordedOf(uid).Has(p.PodUID) || l.isGone(uid, p.PodUID) {
		return nil
	}
	l.gone.Add(podOf{uid, p.PodUID}, nil)
	return icecream
}

// recordedBy returns the keys of the Icecreams that record a Pod whose owner chain does not
// lead to them.
func (l *placementLog) recordedBy(pod types.UID) []cache.ObjectName {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var keys []cache.ObjectName
	for key, pods := range l.cut {
		if pods.Has(pod) {
			keys = append(keys, key)
		}
	}
	return keys
}

// forget forgets an Icecream that is gone.
func (l *placementLog) forget(icecream *icecreamv1alpha1.Icecream) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.unrecorded.Remove(icecream.UID)
	delete(l.cut, cache.MetaObjectToName(icecream))
}

func (l *placementLog) unrecordedOf(icecream types.UID) sets.Set[types.UID] {
	if pods, ok := l.unrecorded.Get(icecream); ok {
		return pods.(sets.Set[types.UID])
	}
	return nil
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
