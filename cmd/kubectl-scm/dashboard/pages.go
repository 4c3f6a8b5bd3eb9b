// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// page is what a URL shows.
type page struct {
	Title string
	// Current is the page in the navigation, if it is one.
	Current string
	// Parts are the fragments, and "plots" and "form" where the page has these. Plots are the controllers in the plots.
	Parts []string
	Plots []string
	Form  *form

	// refresh reads what only this page shows. It may be nil. fill adds to the view what only this page shows.
	refresh func(ctx context.Context, now time.Time)
	fill    func(v *view)
}

// view is what the templates of fragments show.
type view struct {
	*snapshot
	Base     string
	Verdict  verdict
	Timeline *timelineView

	// Of the overview.
	Controllers []controllerRow
	Broken      *table
	// Of a controller.
	Controller *debug.Controller
	Last       time.Time
	Queues     []queueView
	// Of the list of objects.
	List *table
	// Of an object.
	Object      *cluster.Object
	ObjectFresh freshness
	Missing     bool
	Watching    bool // whether the object comes from the watch
	Explained   reading[debug.Explanation]
	Keys        []keyRow
	Syncs       []syncRow
	Events      reading[[]cluster.Event]
	Watched     []watched

	clock time.Duration // what the clock of the daemon is behind
}

// Local converts a time of the daemon's clock.
func (v *view) Local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(v.clock)
}

// Expired returns whether the Lease has expired.
func (v *view) Expired() bool { return v.expired() }

// newView returns what all pages show.
func newView(s *snapshot, base string) *view {
	v := &view{snapshot: s, Base: base, Verdict: newVerdict(s)}
	if s.Report.Known() {
		v.clock = s.Report.Read.Sub(s.Report.Value.Time).Round(time.Second)
	}
	for _, o := range s.kinds {
		heard, complete := o.state()
		all, notReady := o.count()
		v.Watched = append(v.Watched, watched{Kind: o.kind.Name, Complete: complete, Fresh: heard.Fresh(), Count: all,
			Broken: notReady})
	}
	return v
}

// watched is how fresh the objects of a kind are.
type watched struct {
	Kind          string
	Count, Broken int
	Complete      bool
	Fresh         freshness
}

// overview returns the first page.
func (d *Dashboard) overview(*http.Request) (*page, error) {
	return &page{
		Title: "Overview", Current: "overview", Parts: []string{"leader", "controllers", "plots", "broken", "replicas"}, Plots: controllers(),
		fill: func(v *view) {
			v.Timeline = newTimelineView(v.snapshot)
			for _, c := range v.Report.Value.Controllers {
				v.Controllers = append(v.Controllers, newControllerRow(c, v.history))
			}
			v.Broken = newTable(v, filter{State: broken}, 0)
		},
	}, nil
}

// controllers returns the names of the controllers. They are known before the daemon answers.
func controllers() []string {
	names := cluster.Controllers()
	for i := range names {
		names[i] += "-controller"
	}
	return names
}

// controllerRow is a controller in the overview.
type controllerRow struct {
	debug.Controller
	Queue, Delayed, Failing int
	Oldest, Syncs, Failed   string
	Last                    time.Time
	Why                     string
}

func newControllerRow(c debug.Controller, h *history) controllerRow {
	why := debug.Short(cmp.Or(c.Reason, c.Unhealthy))
	row := controllerRow{Controller: c, Last: lastSuccess(c), Why: truncated(why, 400)}
	row.Queue, _, _ = load(c)
	for _, q := range c.Queues {
		row.Delayed, row.Failing = row.Delayed+q.Delayed.Total, row.Failing+q.Failing
	}
	row.Oldest, row.Syncs, row.Failed = "-", "-", "-"
	if f, ok := h.latest(c.Name); ok {
		if row.Queue > 0 {
			row.Oldest = words(time.Duration(f.oldest * float64(time.Second)))
		}
		if !math.IsNaN(f.syncs) {
			row.Syncs, row.Failed = strconv.FormatFloat(f.syncs, 'f', 1, 64), strconv.FormatFloat(f.failed, 'f', 1, 64)
		}
	}
	return row
}

// controller returns the page of a controller.
func (d *Dashboard) controller(r *http.Request) (*page, error) {
	name := r.PathValue("name")
	if !slices.Contains(controllers(), name) {
		return nil, fmt.Errorf("%q is not a controller: use %s", name, strings.Join(controllers(), ", "))
	}
	return &page{Title: name, Parts: []string{"controller", "plots"}, Plots: []string{name}, fill: func(v *view) {
		for _, c := range v.Report.Value.Controllers {
			if c.Name != name {
				continue
			}
			v.Controller, v.Last = &c, lastSuccess(c)
			for _, q := range c.Queues {
				v.Queues = append(v.Queues, newQueueView(v, name, q))
			}
		}
	}}, nil
}

// form is the filter of the list of objects.
type form struct {
	filter
	Kinds, Reasons []string
}

// list returns the page of objects that a filter selects.
func (d *Dashboard) list(r *http.Request) (*page, error) {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("from")) // anything else is the beginning
	f := form{Reasons: reasons(d.kinds), filter: filter{Kind: query.Get("kind"), Reason: query.Get("reason"),
		Text: query.Get("q"), State: query.Get("state")}}
	for _, kind := range cluster.Kinds {
		f.Kinds = append(f.Kinds, kind.Controller)
	}
	return &page{Title: "Objects", Current: "objects", Parts: []string{"form", "list"}, Form: &f, fill: func(v *view) {
		v.List = newTable(v, f.filter, max(0, from))
	}}, nil
}
