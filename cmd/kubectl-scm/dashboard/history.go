// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"
)

const (
	// reportInterval is how often a report is read.
	reportInterval = 2 * time.Second
	// remembered is for how long the plots go back.
	remembered = 15 * time.Minute
)

// sample is what the plots show at one time, by controller. A gap has no figures.
type sample struct {
	at      time.Time
	figures map[string]figures
}

// figures are the keys that run or wait, the age of the oldest of them in seconds, and syncs and failed syncs in a
// second. NaN is a gap.
type figures struct{ queue, oldest, syncs, failed float64 }

// history keeps the samples of the plots. It is safe for concurrent use.
type history struct {
	mutex   sync.Mutex
	samples []sample
	last    debug.Report // the last report, whose counters the next ones are compared with
}

// add adds a report, or a gap if there is none.
func (h *history) add(now time.Time, report *debug.Report) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	s := sample{at: now, figures: map[string]figures{}}
	if report != nil {
		for _, c := range report.Controllers {
			s.figures[c.Name] = h.figuresOf(c, *report)
		}
		h.last = *report
	}
	h.samples = append(h.samples, s)
	h.samples = h.after(now.Add(-remembered))
}

// figuresOf returns the figures of a controller. A rate needs an earlier report of the same process.
func (h *history) figuresOf(c debug.Controller, report debug.Report) figures {
	f := figures{syncs: math.NaN(), failed: math.NaN()}
	queue, syncs, failed := load(c)
	f.queue = float64(queue)
	if oldest := oldestKey(c); !oldest.IsZero() {
		f.oldest = max(0, report.Time.Sub(oldest).Seconds())
	}
	between := report.Time.Sub(h.last.Time).Seconds()
	if h.last.Process != report.Process || between <= 0 {
		return f
	}
	for _, before := range h.last.Controllers {
		_, syncsBefore, failedBefore := load(before)
		// Versions without the counters report that no sync has ended.
		if before.Name == c.Name && syncs >= syncsBefore && (syncs > 0 || lastSuccess(c).IsZero()) {
			f.syncs, f.failed = float64(syncs-syncsBefore)/between, float64(failed-failedBefore)/between
		}
	}
	return f
}

// since returns the samples after a time.
func (h *history) since(t time.Time) []sample {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.after(t))
}

func (h *history) after(t time.Time) []sample {
	begun, _ := slices.BinarySearchFunc(h.samples, t.Add(1), func(s sample, t time.Time) int { return s.at.Compare(t) })
	return h.samples[begun:]
}

// latest returns the last figures of a controller.
func (h *history) latest(controller string) (figures, bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.samples) == 0 {
		return figures{}, false
	}
	f, ok := h.samples[len(h.samples)-1].figures[controller]
	return f, ok
}

// load returns how many keys of a controller run or wait, and how many syncs have ended and failed.
func load(c debug.Controller) (queue int, syncs, failed int64) {
	for _, q := range c.Queues {
		queue, syncs, failed = queue+q.Running.Total+q.Waiting.Total, syncs+q.Syncs, failed+q.Failed
	}
	return queue, syncs, failed
}

// oldestKey returns since when the oldest key runs or waits, zero if there is none.
func oldestKey(c debug.Controller) time.Time {
	var oldest time.Time
	for _, q := range c.Queues {
		for _, entries := range []reconcile.Entries{q.Running, q.Waiting} {
			if len(entries.First) > 0 && (oldest.IsZero() || entries.First[0].Time.Before(oldest)) {
				oldest = entries.First[0].Time
			}
		}
	}
	return oldest
}

// lastSuccess returns when a sync of a controller last succeeded.
func lastSuccess(c debug.Controller) time.Time {
	var last time.Time
	for _, q := range c.Queues {
		if q.LastSuccess.After(last) {
			last = q.LastSuccess
		}
	}
	return last
}

// plotted is the JSON form of samples: columns, as the plots need them.
type plotted struct {
	// Times are in seconds: the first since 1970, each other one since the one before. Figures has the columns of each
	// controller.
	Times   []int64                `json:"t"`
	Figures map[string][4][]figure `json:"f"`
}

// figure is a number with few digits, or null for a gap.
type figure float64

// plot returns the samples of some controllers.
func plot(samples []sample, controllers []string) plotted {
	p := plotted{Times: []int64{}, Figures: map[string][4][]figure{}}
	var before int64
	for _, s := range samples {
		p.Times = append(p.Times, s.at.Unix()-before)
		before = s.at.Unix()
	}
	for _, name := range controllers {
		var columns [4][]figure
		for _, s := range samples {
			f, ok := s.figures[name]
			if !ok {
				f = figures{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
			}
			for i, value := range [...]float64{f.queue, f.oldest, f.syncs, f.failed} {
				columns[i] = append(columns[i], figure(value))
			}
		}
		p.Figures[name] = columns
	}
	return p
}

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	if f >= 10 {
		return strconv.AppendFloat(nil, float64(f), 'f', 0, 64), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(f)*10)/10, 'f', -1, 64), nil
}
