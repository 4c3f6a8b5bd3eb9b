// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// table has the figures so far, for people. It has less than ten lines: more of what a
// benchmark logs is not shown.
type table struct {
	handovers [][]string
	standbys  []string
	over      bool // a budget is exceeded
}

// addHandovers reports the handovers of both peers after a fault. budget returns what
// ours may take, and whether they did.
func (t *table) addHandovers(b *testing.B, fault fault, ours, stock []handover, budget func(median, most time.Duration) (time.Duration, bool)) {
	b.ReportMetric(0, "ns/op")
	var medians []time.Duration
	for _, side := range []struct {
		name      string
		handovers []handover
	}{{"ours", ours}, {"stock", stock}} {
		written := times(side.handovers, func(h handover) time.Duration { return h.written })
		middle, most := median(written), slices.Max(written)
		medians = append(medians, middle)
		b.ReportMetric(milliseconds(middle), side.name+"-p50-ms")
		b.ReportMetric(milliseconds(most), side.name+"-max-ms")
		t.handovers = append(t.handovers, []string{
			fault.name, side.name, fmt.Sprint(len(side.handovers)),
			inWords(median(times(side.handovers, func(h handover) time.Duration { return h.freed }))),
			inWords(median(times(side.handovers, func(h handover) time.Duration { return h.taken }))),
			inWords(middle), inWords(most),
		})
	}
	ratio := float64(medians[1]) / float64(medians[0])
	b.ReportMetric(ratio, "stock/ours")
	most := slices.Max(times(ours, func(h handover) time.Duration { return h.written }))
	allowed, kept := budget(medians[0], most)
	verdict := fmt.Sprintf("within %s", inWords(allowed))
	if !kept {
		verdict, t.over = fmt.Sprintf("OVER %s", inWords(allowed)), true
	}
	n := len(t.handovers)
	t.handovers[n-2] = append(t.handovers[n-2], verdict)
	t.handovers[n-1] = append(t.handovers[n-1], fmt.Sprintf("%.1f times ours", ratio))
}

func (t *table) addStandby(name string, watches, requests int) {
	line := fmt.Sprintf("a standby of %s: watches of the Lease: %d, requests in a minute: %d", name, watches, requests)
	if name == "ours" && (watches != 1 || requests != 0) {
		line, t.over = line+"; OVER 1 and 0", true
	}
	t.standbys = append(t.standbys, line)
}

// String is the table.
func (t *table) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d Foos, %d CPUs, load average %s; medians since the fault:\n", fooCount, runtime.NumCPU(), loadAverage())
	if len(t.handovers) > 0 {
		w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "FAULT\tWHO\tTIMES\tLEASE FREE\tTAKEN\tWRITTEN\tAT MOST\t")
		for _, row := range t.handovers {
			fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
		}
		_ = w.Flush() // to a strings.Builder, which cannot fail
	}
	for _, line := range t.standbys {
		fmt.Fprintln(&s, line)
	}
	if t.over {
		fmt.Fprintln(&s, advice)
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// advice is one line, however long.
const advice = "OVER: repeat it on a machine that does nothing else. If it stays so, the time until LEASE FREE goes " +
	"into the drain and the release, from there until TAKEN into the standby's watch of the Lease, from there until " +
	"WRITTEN into the replay of the caches and the syncs that come before that of the Foo."

func times(handovers []handover, of func(handover) time.Duration) []time.Duration {
	var all []time.Duration
	for _, h := range handovers {
		all = append(all, of(h))
	}
	return all
}

// median of an even number is the mean of the two in the middle.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func inWords(d time.Duration) string { return fmt.Sprintf("%.0f ms", milliseconds(d)) }
