// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// queueView is a queue with links.
type queueView struct {
	reconcile.Progress
	Keys             []keyRow
	More             int
	Failures, Recent []syncRow
}

func newQueueView(v *view, controller string, q reconcile.Progress) queueView {
	queue := queueView{Progress: q, Keys: keyRows(v, controller, q.Running.First, q.Waiting.First, q.Delayed.First),
		Failures: syncRows(v, controller, q.Failures), Recent: syncRows(v, controller, q.Recent)}
	queue.More = q.Running.Total + q.Waiting.Total + q.Delayed.Total - len(queue.Keys)
	return queue
}

// keyRow is a key in a queue. Path is that of its object, if it has a page.
type keyRow struct {
	reconcile.Entry
	Place, Base, Path string
}

func keyRows(v *view, controller string, running, waiting, delayed []reconcile.Entry) []keyRow {
	var rows []keyRow
	for i, place := range [...]string{"running", "waiting", "delayed"} {
		for _, entry := range [...][]reconcile.Entry{running, waiting, delayed}[i] {
			entry.Error = debug.Short(entry.Error)
			rows = append(rows, keyRow{entry, place, v.Base, keyPath(controller, entry.Key)})
		}
	}
	return rows
}

// syncRow is a sync.
type syncRow struct {
	reconcile.Outcome
	Base, Path string
}

func syncRows(v *view, controller string, syncs []reconcile.Outcome) []syncRow {
	var rows []syncRow
	for _, sync := range syncs {
		if sync.Result == reconcile.ResultStale { // it only waits for the cache
			sync.Error = ""
		}
		sync.Error, sync.Began = debug.Short(sync.Error), v.Local(sync.Began)
		rows = append(rows, syncRow{sync, v.Base, keyPath(controller, sync.Key)})
	}
	return rows
}

// rows is how many rows a table of objects has.
const rows = 50

// table is a part of a list of objects.
type table struct {
	Base string
	Rows []objectRow
	// Complete is whether all objects are known.
	Complete bool
	// All is how many objects the filter selects, and Total how many there are. First and To are the numbers of the first
	// and the last row, and More is how many come after it.
	All, Total, First, To, More int
	// Previous and Next are the paths of the other parts, empty if there are none.
	Previous, Next string
}

// objectRow is an object in a list. Retries and Try are known of those that are among the first of the queue.
type objectRow struct {
	cluster.Object
	ID      string
	Retries int
	Try     time.Time
}

func newTable(v *view, f filter, from int) *table {
	selected := find(v.kinds, f)
	t := &table{Base: v.Base, All: len(selected), Complete: true}
	for _, w := range v.Watched {
		t.Total += w.Count
		t.Complete = t.Complete && w.Complete
	}
	from = min(from, max(0, len(selected)-1))
	selected = selected[from:]
	t.First = from + 1
	t.More = max(0, len(selected)-rows)
	queued := v.queued()
	for _, object := range selected[:len(selected)-t.More] {
		row := objectRow{Object: *object, ID: objectPath(*object)}
		if entry, ok := queued[strings.ToLower(object.Kind)+"-controller "+object.Key()]; ok {
			row.Retries, row.Try = entry.Retries, v.Local(entry.Time)
		}
		t.Rows = append(t.Rows, row)
	}
	t.To = from + len(t.Rows)
	query := url.Values{"kind": {f.Kind}, "reason": {f.Reason}, "q": {f.Text}}
	if f.State != "" {
		query.Set("state", f.State)
	}
	if from > 0 {
		query.Set("from", strconv.Itoa(max(0, from-rows)))
		t.Previous = "objects?" + query.Encode()
	}
	if t.More > 0 {
		query.Set("from", strconv.Itoa(t.To))
		t.Next = "objects?" + query.Encode()
	}
	return t
}

// queued returns the keys that have failed and are tried again, by controller and key.
func (v *view) queued() map[string]reconcile.Entry {
	all := map[string]reconcile.Entry{}
	for _, c := range v.Report.Value.Controllers {
		for _, q := range c.Queues {
			for _, entry := range slices.Concat(q.Delayed.First, q.Waiting.First, q.Running.First) {
				all[c.Name+" "+entry.Key] = entry
			}
		}
	}
	return all
}
