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
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
)

// reasonPodsScheduled is the reason of the Event about Pods that were placed.
const reasonPodsScheduled = "PodsScheduled"

// maxRemembered bounds of how many Icecreams something is remembered. They are few at
// a time: each is synced at once.
const maxRemembered = 4096

// placementLog logs placements. It may be used by several goroutines, each for
// another Icecream.
type placementLog struct {
	// logger has no values of its own: what people search for is the line that
	// begins with "Pod scheduled" icecream=.
	logger   klog.Logger
	recorder record.EventRecorder
	// unrecorded are the sets of Pod UIDs, by that of their Icecream, of which the
	// line was logged but the record not written.
	unrecorded *lru.Cache

	// The placements of Pods that are gone, by the UID of their Icecream, until it is
	// synced. dropped are the UIDs of those whose record went before that was noted.
	mutex   sync.Mutex
	gone    *lru.Cache
	dropped *lru.Cache
}

func newPlacementLog(logger klog.Logger, recorder record.EventRecorder) *placementLog {
	return &placementLog{
		logger:     logger,
		recorder:   recorder,
		unrecorded: lru.New(maxRemembered),
		gone:       lru.New(maxRemembered),
		dropped:    lru.New(maxRemembered),
	}
}

// depart notes the placement of a Pod of the Icecream with the given UID that is gone,
// lest it came and went unnoticed.
func (l *placementLog) depart(icecream types.UID, p icecreamv1alpha1.Placement) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before, _ := l.gone.Get(icecream)
	gone, _ := before.([]icecreamv1alpha1.Placement)
	l.gone.Add(icecream, append(gone, p))
}

// departed returns, once, the placements of the Pods of the Icecream that are gone.
func (l *placementLog) departed(icecream types.UID) []icecreamv1alpha1.Placement {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before, _ := l.gone.Get(icecream)
	l.gone.Remove(icecream)
	gone, _ := before.([]icecreamv1alpha1.Placement)
	return slices.DeleteFunc(gone, func(p icecreamv1alpha1.Placement) bool {
		_, dropped := l.dropped.Get(p.PodUID)
		return dropped
	})
}

// tell logs the placements that it has not yet logged.
func (l *placementLog) tell(icecream *icecreamv1alpha1.Icecream, placed []icecreamv1alpha1.Placement) {
	if len(placed) == 0 {
		return
	}
	logged := sets.New[types.UID]()
	if before, ok := l.unrecorded.Get(icecream.UID); ok {
		logged = before.(sets.Set[types.UID])
	}
	for _, p := range placed {
		if logged.Has(p.PodUID) {
			continue
		}
		logged.Insert(p.PodUID)
		l.logger.Info("Pod scheduled", "icecream", klog.KObj(icecream), "pod", klog.KRef(icecream.Namespace, p.Pod), "node", p.Node)
	}
	l.unrecorded.Add(icecream.UID, logged)
}

// recorded is to be called once the status has the records. It tells people of the
// placements, all by one Event.
func (l *placementLog) recorded(icecream *icecreamv1alpha1.Icecream, placed, records []icecreamv1alpha1.Placement) {
	l.drop(icecream.Status.Placements, records)
	if len(placed) == 0 {
		return
	}
	l.unrecorded.Remove(icecream.UID)
	l.recorder.Event(icecream, corev1.EventTypeNormal, reasonPodsScheduled, summary(placed))
}

// drop notes which Pods have left the record. The cache knows that a Pod is gone
// before its departure is noted, and a sync may come in between.
func (l *placementLog) drop(before, now []icecreamv1alpha1.Placement) {
	kept := sets.New[types.UID]()
	for _, p := range now {
		kept.Insert(p.PodUID)
	}
	for _, p := range before {
		if !kept.Has(p.PodUID) {
			l.dropped.Add(p.PodUID, nil)
		}
	}
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
