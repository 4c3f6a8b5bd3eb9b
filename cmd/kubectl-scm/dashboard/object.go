// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net/http"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// objectPage is the page of one object, with what only this page reads.
type objectPage struct {
	d               *Dashboard
	kind            cluster.Kind
	namespace, name string

	object    reading[cluster.Object] // only used while the watch does not work
	explained reading[debug.Explanation]
	events    reading[[]cluster.Event]
	tried     time.Time // when the Events were last asked for
}

// object returns the page of an object.
func (d *Dashboard) object(r *http.Request) (*page, error) {
	kind, err := cluster.KindOf(r.PathValue("kind"))
	if err != nil {
		return nil, err
	}
	o := &objectPage{d: d, kind: kind, namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	o.object.Interval, o.explained.Interval, o.events.Interval = reportInterval, reportInterval, 10*time.Second
	return &page{Title: kind.Name + " " + o.namespace + "/" + o.name, Parts: []string{"object", "why", "events"},
		refresh: o.refresh, fill: o.fill}, nil
}

// refresh asks the daemon and reads the Events.
func (o *objectPage) refresh(ctx context.Context, now time.Time) {
	if s := o.d.snapshot(); s.Report.Err != nil {
		o.explained.Err = s.Report.Err // asking again would only take time
	} else if e, err := o.d.explain(ctx, o.kind, o.namespace, o.name); err != nil {
		o.explained.Err = err
	} else {
		o.explained.succeeded(e, time.Now())
	}
	if _, complete := o.watched().state(); !complete {
		object, err := bounded(ctx, o.d.patience(), func(ctx context.Context) (cluster.Object, error) {
			return o.d.source.Object(ctx, o.kind, o.namespace, o.name)
		})
		if o.object.Err = err; err == nil {
			o.object.succeeded(object, time.Now())
		}
	}
	if now.Sub(o.tried) < o.events.Interval {
		return
	}
	o.tried = now
	events, err := bounded(ctx, o.d.patience(), func(ctx context.Context) ([]cluster.Event, error) {
		return o.d.source.Events(ctx, o.kind, o.namespace, o.name)
	})
	if o.events.Err = err; err == nil {
		o.events.succeeded(events, time.Now())
	}
}

// watched returns the objects of the same kind.
func (o *objectPage) watched() *objects {
	for _, objects := range o.d.kinds {
		if objects.kind == o.kind {
			return objects
		}
	}
	return nil // not reached: the kind is known
}

func (o *objectPage) fill(v *view) {
	heard, complete := o.watched().state()
	if object, ok := o.watched().get(o.namespace, o.name); ok {
		v.Object, v.ObjectFresh, v.Watching = &object, heard.Fresh(), true
	} else if complete {
		v.Missing, v.ObjectFresh, v.Watching = true, heard.Fresh(), true
	} else {
		if v.ObjectFresh = o.object.Fresh(); o.object.Known() {
			v.Object = &o.object.Value
		}
	}
	v.Explained, v.Events = o.explained, o.events
	e := o.explained.Value
	if o.explained.Known() {
		v.clock = o.explained.Read.Sub(e.Time).Round(time.Second)
	}
	v.Keys = keyRows(v, e.Controller, e.Running, e.Waiting, e.Delayed)
	v.Syncs = syncRows(v, e.Controller, e.Syncs)
}
