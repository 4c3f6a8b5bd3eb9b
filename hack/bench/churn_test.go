// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/bench/usage"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

// What the aggregator may take.
const (
	aggregationInterval = time.Second // the daemon's default
	churnCPUBudget      = 1.3         // times that of who only decodes the same events
	churnLagBudget      = aggregationInterval + 200*time.Millisecond
)

var (
	churnPods   = flag.Int("churn-pods", 20_000, "how many Pods BenchmarkChurn has")
	churnFoos   = flag.Int("churn-foos", 100, "of how many Foos they are")
	churnRate   = flag.Int("churn-rate", 500, "how many of them it changes each second, if the machine carries that")
	churnPeriod = flag.Duration("churn-period", 30*time.Second, "for how long")
)

// churnEach is how many Pods a Foo has.
func churnEach() int { return *churnPods / max(*churnFoos, 1) }

// churned is what became of the changes of Pods in one round.
type churned struct {
	perSecond float64 // changes
	writes    int     // of statuses
	tooSoon   int     // writes for a Foo before the interval was over
	never     int     // changes that no status told of
	lags      []time.Duration
	cpu       time.Duration // of the daemon
	decoder   time.Duration // CPU of who only decodes
	peak      uint64
}

// BenchmarkChurn changes Pods all the time and measures what it costs the daemon to say so
// in statuses, beside a program that is told of the same changes at the same time and does
// nothing about them, and how late it says so. See the comment of the package.
func BenchmarkChurn(b *testing.B) {
	l := newLab(b, func(l *lab, ctx context.Context) error {
		return errors.Join(l.allowDecoder(ctx), l.createPods(ctx, *churnFoos, churnEach()))
	})
	daemon, err := l.startAggregator(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	stop := func(p *process.Process) {
		if err := p.Stop(stopGrace); err != nil {
			b.Error(err)
		}
	}
	defer stop(daemon)
	decoder, err := l.startDecoder(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer stop(decoder)
	if err := l.waitTold(b.Context(), *churnFoos, churnEach()); err != nil {
		b.Fatal(err)
	}
	var rounds []churned
	for b.Loop() {
		c, err := l.churn(b.Context(), daemon, decoder)
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, c)
	}
	reportChurn(b, rounds)
}

// churn changes Pods for a while and reads what came of it.
func (l *lab) churn(ctx context.Context, daemon, decoder *process.Process) (c churned, err error) {
	since := time.Now()
	before, err := l.usages(daemon, decoder)
	if err != nil {
		return c, err
	}
	made, err := l.changePods(ctx, *churnFoos, churnEach(), *churnRate, *churnPeriod)
	if err != nil {
		return c, err
	}
	c.perSecond = float64(made) / time.Since(since).Seconds()
	// The last state is written when the interval is over.
	time.Sleep(2 * aggregationInterval)
	after, err := l.usages(daemon, decoder)
	if err != nil {
		return c, err
	}
	c.cpu, c.decoder, c.peak = after[0].CPU-before[0].CPU, after[1].CPU-before[1].CPU, after[0].Peak
	return c, l.readChurn(&c, since)
}

func (l *lab) usages(processes ...*process.Process) (all []usage.Usage, err error) {
	for _, p := range processes {
		u, err := usage.Of(l.dir, p.Name())
		if err != nil {
			return nil, errors.Join(err, p.Err())
		}
		all = append(all, u)
	}
	return all, nil
}

// startAggregator starts the daemon with the aggregator alone.
func (l *lab) startAggregator(ctx context.Context) (*process.Process, error) {
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return nil, err
	}
	path, args, err := l.ours().command(kubeconfig, usual)
	if err != nil {
		return nil, err
	}
	return l.group.Start("aggregator", nil, path, append(args, "--controllers=status-aggregator-controller")...)
}

// startDecoder returns when it has all Pods.
func (l *lab) startDecoder(ctx context.Context) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, namespace, decoder)
	if err != nil {
		return nil, err
	}
	p, err := l.group.Start(decoder, nil, self, decoder, kubeconfig)
	if err != nil {
		return nil, err
	}
	return p, await(ctx, "it has all Pods", pollInterval, func() error {
		log, err := os.ReadFile(l.group.LogPath(decoder))
		if err == nil && !strings.Contains(string(log), standsBy) {
			err = errors.New("not yet")
		}
		return errors.Join(err, p.Err())
	})
}

// reportChurn reports what all rounds have in common.
func reportChurn(b *testing.B, rounds []churned) {
	b.ReportMetric(0, "ns/op")
	var s strings.Builder
	fmt.Fprintf(&s, "%d Pods of %d Foos, %d CPUs, load average %s:\n", *churnFoos*churnEach(), *churnFoos, runtime.NumCPU(), loadAverage())
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHANGES/S\tSTATUS WRITES\tTOO SOON\tNEVER TOLD\tLAG P50\tLAG P99\tCPU\tOF DECODER\tRATIO\tPEAK MIB\t")
	var ratios, lags []float64
	for _, c := range rounds {
		slices.Sort(c.lags)
		p99 := c.lags[(len(c.lags)*99+99)/100-1]
		ratio := float64(c.cpu) / float64(c.decoder)
		ratios, lags = append(ratios, ratio), append(lags, milliseconds(p99))
		fmt.Fprintf(w, "%.0f\t%d\t%d\t%d\t%s\t%s\t%.2f s\t%.2f s\t%.2f\t%d\t\n", c.perSecond, c.writes, c.tooSoon, c.never,
			inWords(median(c.lags)), inWords(p99), c.cpu.Seconds(), c.decoder.Seconds(), ratio, c.peak>>20)
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	verdict := func(kept bool) string {
		if kept {
			return "kept"
		}
		return "OVER"
	}
	fmt.Fprintf(&s, "budgets: CPU at most %.1f times the decoder's: %s; lag p99 at most %s: %s",
		churnCPUBudget, verdict(middle(ratios) <= churnCPUBudget), inWords(churnLagBudget), verdict(middle(lags) <= milliseconds(churnLagBudget)))
	b.ReportMetric(middle(ratios), "cpu-ratio")
	b.ReportMetric(middle(lags), "lag-p99-ms")
	b.Log(s.String())
}
