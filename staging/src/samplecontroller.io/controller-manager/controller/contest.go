// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

const (
	// contestedAfter is the number of corrections within contestWindow from which on the other writer is named.
	contestedAfter = 3
	contestWindow  = time.Hour
	// quickCorrections is how many times a field is corrected without delay.
	quickCorrections = 5
	// contestPeriod is the interval of corrections after that. A field that needs no correction for twice as
	// long is corrected without delay again.
	contestPeriod = 10 * time.Second
	// rewriteRetry is the delay before a field that admission changed is written again, if nothing else changes:
	// the webhook or the policy may be gone.
	rewriteRetry = 5 * time.Minute
)

// contests remembers how the fields of owned objects were written. Without it, two writers of one field, such as
// a controller that sets the replicas and an autoscaler, would correct each other as fast as they can. And a
// field that admission changes in each write would be written at every event. It is kept in memory only: a new
// process starts from zero. It is safe for concurrent use for different objects.
type contests struct {
	byObject *utilcache.Expiring // histories by UID; read-only
}

func newContests() contests { return contests{utilcache.NewExpiring()} }

// histories are those of one object, by field.
type histories map[string]history

// history is how one field was written.
type history struct {
	value      uint64      // hash of the value that was written
	stored     uint64      // hash of the value that the API server stored instead, 0 if it kept ours
	generation int64       // of the owner, at the last write
	written    time.Time   // time of the last write
	count      int         // consecutive corrections without a pause
	times      []time.Time // of the last corrections, at most contestedAfter
	since      time.Time   // when it became contested, or when admission changed the value first
	manager    string      // the other field manager, "" if it is not known
}

// contest is a field whose value does not last.
type contest struct {
	field   string
	manager string // the other field manager, "" if it is not known
	// isRewritten is whether admission changes the field.
	isRewritten bool
	// isHeld is whether the field is not written now.
	isHeld       bool
	since, again time.Time
}

// of returns the histories of an object.
func (c contests) of(object types.UID) histories {
	known, _ := c.byObject.Get(object)
	of, _ := known.(histories)
	return of
}

// keep sets the histories of an object.
func (c contests) keep(object types.UID, of histories, now time.Time) {
	maps.DeleteFunc(of, func(_ string, h history) bool { return now.Sub(h.written) >= contestWindow })
	c.byObject.Set(object, of, contestWindow)
}

// judge returns the contested fields of an object in their order, whose owner has a generation and is about to
// make changes.
func (h histories) judge(generation int64, changes []change, now time.Time) (all []contest) {
	for field, known := range h {
		i := slices.IndexFunc(changes, func(c change) bool { return c.field == field })
		isWanted := i >= 0 && changes[i].value == known.value
		isStanding := i < 0 && known.generation == generation // or the owner may want something else
		if !isWanted && !isStanding {
			continue
		}
		found := contest{field: field, manager: known.manager, since: known.since}
		if retry := known.written.Add(rewriteRetry); isWanted && known.stored == changes[i].before &&
			known.generation == generation && now.Before(retry) {
			found.isRewritten, found.isHeld, found.again = true, true, retry
			all = append(all, found)
			continue
		}
		if found.again = known.written.Add(known.quiet()); !now.Before(found.again) {
			continue
		}
		if next := known.written.Add(contestPeriod); isWanted && known.count >= quickCorrections && now.Before(next) {
			found.isHeld, found.again = true, next
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(a, b contest) int { return cmp.Compare(a.field, b.field) })
	return all
}

// quiet returns how long after the last correction a field counts as contested. That is twice the longer one of
// the last pauses, so that the verdict does not change between two corrections. It is 0 for a field that is not
// contested.
func (h history) quiet() time.Duration {
	n := len(h.times)
	if n < contestedAfter || h.times[n-1].Sub(h.times[0]) > contestWindow {
		return 0
	}
	longest := contestPeriod
	for i := 1; i < n; i++ {
		longest = max(longest, h.times[i].Sub(h.times[i-1]))
	}
	return min(2*longest, contestWindow)
}

// after returns the history after a change was written, and the API server has stored something else, or 0. isDone
// is whether the owner's spec had been carried out before. It calls manager for the other writer.
func (h history) after(c change, stored uint64, generation int64, isDone bool, manager func() string,
	now time.Time) history {
	isKnown := !h.written.IsZero()
	switch {
	case isKnown && h.stored != 0 && h.stored == c.before && h.value == c.value:
		// Nobody else has set the field.
	case isKnown && h.value != c.value, !isKnown && !isDone:
		h = history{} // it is the first write of this value
	default:
		pause := now.Sub(h.written)
		if pause >= 2*contestPeriod {
			h.count = 0
		}
		if pause >= h.quiet() && h.stored == 0 {
			h.since = now
		}
		h.count++
		h.times = append(slices.Clone(h.times), now)
		h.times = h.times[max(len(h.times)-contestedAfter, 0):]
		h.manager = manager()
	}
	if stored != 0 && h.stored == 0 {
		h.since = now
	}
	h.value, h.stored, h.generation, h.written = c.value, stored, generation, now
	return h
}

// isHeld reports whether a field is held.
func isHeld(contests []contest, field string) bool {
	return slices.ContainsFunc(contests, func(c contest) bool { return c.isHeld && c.field == field })
}

// without returns the operations except those of held fields, and the tests of elements of lists in which nothing
// is changed any more.
func without(operations []operation, found []contest) []operation {
	kept := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool { return isHeld(found, o.field) })
	if len(kept) == len(operations) {
		return operations
	}
	return slices.DeleteFunc(slices.Clone(kept), func(o operation) bool {
		element := o.Path[:strings.LastIndex(o.Path, "/")+1]
		return o.Op == "test" && !slices.ContainsFunc(kept, func(k operation) bool {
			return k.Op != "test" && strings.HasPrefix(k.Path+"/", element)
		})
	})
}

// change is what a patch does to one field.
type change struct {
	field         string
	value, before uint64    // hashes
	operation     operation // the first one
}

// fieldChanges returns the changes of a patch.
func fieldChanges(operations []operation) (changes []change) {
	for _, o := range operations {
		if o.field == "" {
			continue
		}
		if !slices.ContainsFunc(changes, func(c change) bool { return c.field == o.field }) {
			changes = append(changes, change{o.field, hashOfJSON(o.after), hashOfJSON(o.before), o})
		}
	}
	return changes
}

// result returns what has become of a change in an object after the patch. unchanged is whether the field is as
// before, so that nothing was corrected. stored is a hash of what the API server stored instead of the value, 0
// if it kept the value, with defaults that it added. An API server may drop a field, such as stringData of a
// Secret: that is not stored.
func (c change) result(patched map[string]any) (stored uint64, unchanged bool) {
	got, ok := valueAt(patched, c.field)
	if !ok {
		return 0, false
	}
	hash := hashOfJSON(got)
	if o := c.operation; o.Op == "add" && o.Path == c.field && !contains(o.Value, got) {
		return hash, false
	}
	return 0, hash == c.before
}

var jsonSeed = maphash.MakeSeed()

// hashOfJSON returns a hash of a value that can be encoded. It is not 0.
func hashOfJSON(value any) uint64 {
	document, _ := json.Marshal(value) // it was decoded from JSON
	return max(maphash.Bytes(jsonSeed, document), 1)
}
