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

// reasonPodsScheduled is the reason of the Event about Pods that were placed.
const reasonPodsScheduled = "PodsScheduled"

const (
	// maxUnrecorded is for how many Icecreams Pods are remembered that are logged and not
	// recorded. It is far above the number of Icecreams in a cluster.
	maxUnrecorded = 65536
	// maxGone is how many Pods are remembered that left the cache or their owner.
	maxGone = 10000
)

// placementLog logs each placement once. It knows what is logged from the statuses, and
// remembers what they do not record. It may be used by several goroutines.
type placementLog struct {
	// logger has no values of its own: people search for the line that begins with
	// "Pod scheduled" icecream=.
	logger    klog.Logger
	recorder  record.EventRecorder
	icecreams cache.TypedIndexer[*icecreamv1alpha1.Icecream]

	mutex sync.Mutex
	// unrecorded has a set of Pod UIDs for each UID of an Icecream: its Pods that are
	// logged, and that its status does not record or, after the last sync, no longer does.
	unrecorded *lru.Cache
	// gone are the Pods that are logged and no longer the Icecream's. One that still
	// exists may come back: its label or its owner reference was removed for a while.
	gone *lru.Cache
	// cut are the Pods that each Icecream records although the owner chain does not lead
	// from them to it, so that only this tells which Icecream to enqueue when they go.
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

// sync logs those placements of the Icecream that are not logged yet. placements are all
// that it has, sorted; cut has the UIDs of the Pods among them that the owner chain does not
// reach.
func (l *placementLog) sync(icecream *icecreamv1alpha1.Icecream, placements []icecreamv1alpha1.Placement, cut sets.Set[types.UID]) {
	l.log(icecream, l.remember(icecream, placements, cut))
}

// remember returns the placements to log, and remembers all.
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
	for pod := range recorded.Union(before) { // which the Icecream no longer has
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

// departed logs the placement of a Pod that is gone if it was not logged: the Pod may have
// come and gone between two syncs of its Icecream.
func (l *placementLog) departed(key cache.ObjectName, uid types.UID, p icecreamv1alpha1.Placement) {
	if icecream := l.missed(key, uid, p); icecream != nil {
		l.log(icecream, []icecreamv1alpha1.Placement{p})
	}
}

// missed returns the Icecream of a Pod that is gone if the Pod's placement was not logged.
func (l *placementLog) missed(key cache.ObjectName, uid types.UID, p icecreamv1alpha1.Placement) *icecreamv1alpha1.Icecream {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// Read under the lock: a sync forgets a Pod once the cached status records it.
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

// recordedBy returns the keys of the Icecreams that record a Pod although the owner chain
// does not lead from it to them.
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

// log writes a line for each placement, and one Event for all.
func (l *placementLog) log(icecream *icecreamv1alpha1.Icecream, placed []icecreamv1alpha1.Placement) {
	if len(placed) == 0 {
		return
	}
	for _, p := range placed {
		l.logger.Info("Pod scheduled", "icecream", klog.KObj(icecream), "pod", klog.KRef(icecream.Namespace, p.Pod), "node", p.Node)
	}
	l.recorder.Event(icecream, corev1.EventTypeNormal, reasonPodsScheduled, summary(placed))
}

// summary says how many Pods were placed, and on which nodes most of them.
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
