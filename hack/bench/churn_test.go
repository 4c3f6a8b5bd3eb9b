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

	churnProfile = flag.String("churn-profile", "", "the directory for profiles of the daemon in the last round, which cost it CPU; none if empty")
)

// churnEach is how many Pods a Foo has.
func churnEach() int { return *churnPods / max(*churnFoos, 1) }

// aggregators tell in statuses what Pods say, by turns.
var aggregators = []struct {
	name  string
	start func(*lab, context.Context, string) (p *process.Process, address string, err error)
}{
	{daemonName, (*lab).startAggregator},
	{teller, func(l *lab, ctx context.Context, name string) (*process.Process, string, error) {
		p, err := l.startSelf(ctx, teller, name)
		return p, "", err
	}},
}

// churned is what became of the changes of Pods in one round.
type churned struct {
	who       string  // told of them
	perSecond float64 // changes
	writes    int     // of statuses
	tooSoon   int     // writes for a Foo before the interval was over
	never     int     // changes that no status told of
	lags      []time.Duration
	cpu       time.Duration // of who told of them
	decoder   time.Duration // CPU of who only decodes
	peak      uint64
}

// BenchmarkChurn changes Pods all the time and measures what it costs the daemon to say so
// in statuses, and how late it says so. A program that is told of the same changes at the
// same time and does nothing about them shows what that alone takes, and another, by turns
// with the daemon, what the decoding and the writes take. See the comment of the package.
func BenchmarkChurn(b *testing.B) {
	l := newLab(b, func(l *lab, ctx context.Context) error {
		return errors.Join(l.allowDecoder(ctx), l.allowTeller(ctx), l.createPods(ctx, *churnFoos, churnEach()))
	})
	decoding, err := l.startSelf(b.Context(), decoder, decoder)
	if err != nil {
		b.Fatal(err)
	}
	var rounds []churned
	for b.Loop() {
		for i := range aggregators {
			c, err := l.churn(b.Context(), i, decoding)
			if err != nil {
				b.Fatal(err)
			}
			rounds = append(rounds, c)
		}
	}
	if err := decoding.Stop(stopGrace); err != nil {
		b.Error(err)
	}
	reportChurn(b, rounds)
}

// churn changes Pods for a while and reads what an aggregator made of it.
func (l *lab) churn(ctx context.Context, i int, decoding *process.Process) (c churned, err error) {
	if err := l.forgetTold(ctx, *churnFoos); err != nil {
		return c, err
	}
	c.who = aggregators[i].name
	p, address, err := aggregators[i].start(l, ctx, fmt.Sprintf("%s-%d", c.who, l.started.Add(1)))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.Stop(stopGrace)) }()
	if err := l.waitTold(ctx, *churnFoos, churnEach()); err != nil {
		return c, err
	}
	time.Sleep(2 * aggregationInterval) // the first write of all must not put off the next
	profiled := func() error { return nil }
	if *churnProfile != "" && address != "" {
		if profiled, err = l.profile(ctx, address, *churnProfile, *churnPeriod); err != nil {
			return c, err
		}
	}
	since := time.Now()
	before, err := l.usages(p, decoding)
	if err != nil {
		return c, err
	}
	made, err := l.changePods(ctx, *churnFoos, churnEach(), *churnRate, *churnPeriod)
	if err != nil {
		return c, err
	}
	c.perSecond = float64(made) / time.Since(since).Seconds()
	// The last state is written when the interval is over. Where none comes, the log says so.
	_ = l.waitLastTold(ctx, *churnFoos)
	after, err := l.usages(p, decoding)
	if err != nil {
		return c, err
	}
	c.cpu, c.decoder, c.peak = after[0].CPU-before[0].CPU, after[1].CPU-before[1].CPU, after[0].Peak
	return c, errors.Join(profiled(), l.readChurn(&c, since))
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
func (l *lab) startAggregator(ctx context.Context, name string) (*process.Process, string, error) {
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return nil, "", err
	}
	path, args, err := l.ours().command(kubeconfig, usual)
	if err != nil {
		return nil, "", err
	}
	p, err := l.group.Start(name, nil, path, append(args, "--controllers=status-aggregator-controller")...)
	return p, secureAddress(args), err
}

// startSelf starts the binary of the benchmark as what it is asked to be, and returns when
// it has all Pods.
func (l *lab) startSelf(ctx context.Context, what, name string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, namespace, what)
	if err != nil {
		return nil, err
	}
	p, err := l.group.Start(name, nil, self, what, kubeconfig)
	if err != nil {
		return nil, err
	}
	return p, await(ctx, "it has all Pods", pollInterval, func() error {
		log, err := os.ReadFile(l.group.LogPath(name))
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
	fmt.Fprintln(w, "WHO\tCHANGES/S\tSTATUS WRITES\tTOO SOON\tNEVER TOLD\tLAG P50\tLAG P99\tCPU\tOF DECODER\tRATIO\tMORE FOR A WRITE\tPEAK MIB\t")
	ratios, extras, lags := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for _, c := range rounds {
		slices.Sort(c.lags)
		p99 := c.lags[(len(c.lags)*99+99)/100-1]
		ratio := float64(c.cpu) / float64(c.decoder)
		extra := (c.cpu - c.decoder) / time.Duration(max(c.writes, 1))
		ratios[c.who], lags[c.who] = append(ratios[c.who], ratio), append(lags[c.who], milliseconds(p99))
		extras[c.who] = append(extras[c.who], float64(extra.Microseconds()))
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%s\t%s\t%.2f s\t%.2f s\t%.2f\t%d µs\t%d\t\n", c.who, c.perSecond, c.writes, c.tooSoon, c.never,
			inWords(median(c.lags)), inWords(p99), c.cpu.Seconds(), c.decoder.Seconds(), ratio, extra.Microseconds(), c.peak>>20)
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	// How many changes there were, and so how many writes, differs from turn to turn.
	var ofTeller []float64
	for _, c := range rounds {
		if c.who == daemonName {
			teller := c.decoder.Seconds() + float64(c.writes)*middle(extras[teller])/1e6
			ofTeller = append(ofTeller, c.cpu.Seconds()/teller)
		}
	}
	ratio, lag := middle(ratios[daemonName]), middle(lags[daemonName])
	fmt.Fprintf(&s, "daemon: CPU %.2f times the decoder's, and %.2f times what as many changes and writes cost the teller; for a write %.0f µs more than the decoder, the teller %.0f µs\n",
		ratio, middle(ofTeller), middle(extras[daemonName]), middle(extras[teller]))
	verdict := func(kept bool) string {
		if kept {
			return "kept"
		}
		return "OVER"
	}
	fmt.Fprintf(&s, "budgets: CPU at most %.1f times the decoder's: %s; lag p99 at most %s: %s",
		churnCPUBudget, verdict(ratio <= churnCPUBudget), inWords(churnLagBudget), verdict(lag <= milliseconds(churnLagBudget)))
	b.ReportMetric(ratio, "cpu-ratio")
	b.ReportMetric(middle(ofTeller), "cpu-ratio-to-teller")
	b.ReportMetric(lag, "lag-p99-ms")
	b.Log(s.String())
}
