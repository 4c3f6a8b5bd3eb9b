// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestRates(t *testing.T) {
	h, now := &history{}, time.Now()
	add := func(process string, syncs, failed int64, success bool) figures {
		now = now.Add(2 * time.Second)
		q := reconcile.Progress{Syncs: syncs, Failed: failed}
		if q.Waiting = (reconcile.Entries{Total: 1, First: []reconcile.Entry{{Time: now.Add(-9 * time.Second)}}}); success {
			q.LastSuccess = now
		}
		h.add(now, &debug.Report{Process: process, Time: now,
			Controllers: []debug.Controller{{Name: "a", Queues: []reconcile.Progress{q}}}})
		f, _ := h.latest("a")
		return f
	}
	for _, test := range []struct {
		got           figures
		syncs, failed float64
		what          string
	}{
		{add("p", 10, 0, true), math.NaN(), math.NaN(), "the first report"},
		{add("p", 20, 4, true), 5, 2, "two reports"},
		{add("p", 20, 4, true), 0, 0, "no syncs"},
		{add("q", 1, 0, true), math.NaN(), math.NaN(), "another process"},
		{add("q", 0, 0, true), math.NaN(), math.NaN(), "a reset, or a version without counters"},
	} {
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		got := test.got
		if !same(got.syncs, test.syncs) || !same(got.failed, test.failed) || got.queue != 1 || got.oldest != 9 {
			t.Errorf("%s: %+v", test.what, got)
		}
	}
	h.add(now.Add(time.Second), nil)
	h.add(now.Add(remembered-time.Second), nil)
	if samples := h.since(time.Time{}); len(samples) != 3 {
		t.Errorf("after 15 minutes there are %d samples, want the last report and two gaps", len(samples))
	}
	got, err := json.Marshal(plot(h.since(now.Add(-time.Second)), []string{"a"}).Figures)
	if want := `{"a":[[1,null,null],[9,null,null],[null,null,null],[null,null,null]]}`; string(got) != want || err != nil {
		t.Errorf("a report and two gaps are %s, %v, want %s", got, err, want)
	}
}

// TestConnection checks when a dashboard connects to a replica.
func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d := New(f, Options{Timeout: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		after := func(what string, wait time.Duration, change func(), least, most int) {
			t.Helper()
			f.Lock()
			change()
			f.dialed = 0
			f.Unlock()
			time.Sleep(wait)
			synctest.Wait()
			f.Lock()
			defer f.Unlock()
			if f.dialed < least || f.dialed > most {
				t.Errorf("%s: connected %d times, want %d to %d", what, f.dialed, least, most)
			}
		}
		after("it begins", 5*time.Second, func() {
			go func() {
				defer close(done)
				d.Run(ctx)
			}()
		}, 1, 1)
		after("nothing happens", 5*time.Minute, func() {}, 0, 0)
		after("the token is about to expire", 5*time.Minute, func() {}, 1, 1)
		after("the leader changes", 5*time.Second, func() { f.lead.Holder = "pod-b_2" }, 1, 1)
		after("the daemon is down", time.Minute, func() { f.failures["report"] = errDown }, 5, 8)
		after("the daemon is back", time.Minute, func() { delete(f.failures, "report") }, 1, 1)
		if s := d.snapshot(); s.Report.Err != nil || len(s.Observed) != 3 {
			t.Errorf("it did not recover: %v, or observed %v", s.Report.Err, s.Observed)
		}
		cancel()
		<-done
	})
}
