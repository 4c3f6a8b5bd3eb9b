// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/bench/usage"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

// residentBudget is what the whole process may have resident with 100,000 Pods of ours.
const residentBudget = 150 << 20

var (
	memoryPods     = flag.Int("memory-pods", 100_000, "how many Pods of ours BenchmarkMemory has")
	memoryFoos     = flag.Int("memory-foos", 1000, "of how many Foos they are")
	memoryOthers   = flag.Int("memory-others", 1000, "how many Deployments of others there are, and of ours without a Foo")
	memoryStrange  = flag.Int("memory-unlabelled-pods", 20_000, "how many Pods without the label there are")
	memoryProfiles = flag.String("memory-profiles", "", "a directory for a profile of the heap after each step")
)

// settings are environments that a daemon starts in, on all that there is.
var settings = []string{"", "GOGC=100", "GOMEMLIMIT=100MiB"}

// step makes objects of one sort and waits until the daemon has them.
type step struct {
	name  string
	count int
	make  func(context.Context) error
	// cached is how many objects of which resource the daemon has after it.
	resource string
	cached   int
}

// inside is what a daemon takes.
type inside struct {
	live  int64 // bytes of its heap that are reachable
	usage usage.Usage
}

// BenchmarkMemory has the daemon, with all its controllers, cache objects of one sort after
// the other, and measures how much larger the live heap is for each. Then it starts a fresh
// daemon on all of them, in each of some settings. See the comment of the package.
func BenchmarkMemory(b *testing.B) {
	l := newLab(b, func(*lab, context.Context) error { return nil })
	ctx := b.Context()
	daemon, err := l.startObserved(ctx, "")
	if err != nil {
		b.Fatal(err)
	}
	report := &memoryReport{}
	before, err := daemon.atRest(ctx)
	if err != nil {
		b.Fatal(err)
	}
	report.idle = before
	for _, s := range l.steps() {
		began := time.Now()
		if err := errors.Join(s.make(ctx), daemon.waitCached(ctx, s.resource, s.cached)); err != nil {
			b.Fatal(fmt.Errorf("%s: %w", s.name, err))
		}
		after, err := daemon.atRest(ctx)
		if err == nil {
			err = daemon.profile(ctx, *memoryProfiles, s.name)
		}
		if err != nil {
			b.Fatal(err)
		}
		report.add(s, before, after)
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", report.last(), time.Since(began).Seconds())
		before = after
	}
	for _, sent := range []string{"pods", "foos", "deployments", "replicasets"} {
		mean, err := l.watchEvent(ctx, sent)
		if err != nil {
			b.Fatal(err)
		}
		report.events = append(report.events, fmt.Sprintf("%s %.0f", sent, mean))
	}
	report.made = before
	if err := daemon.Stop(stopGrace); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, setting := range settings {
			s, err := l.measureStart(ctx, setting)
			if err != nil {
				b.Fatal(err)
			}
			report.starts = append(report.starts, s)
		}
	}
	report.lists, err = l.listed()
	if err != nil {
		b.Fatal(err)
	}
	fmt.Println(report) // of what is logged, ten lines are shown
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(report.starts[0].usage.Peak>>20), "start-peak-MiB")
	b.ReportMetric(float64(report.starts[0].usage.Resident>>20), "rest-MiB")
}

// started is a daemon that was started on all objects.
type started struct {
	setting string
	inside
}

// measureStart starts a daemon and returns what it has taken when it has nothing more to do.
func (l *lab) measureStart(ctx context.Context, setting string) (s started, err error) {
	daemon, err := l.startObserved(ctx, setting)
	if err != nil {
		return s, err
	}
	for resource, count := range map[string]int{"pods": *memoryPods, "foos.samplecontroller.k8s.io": *memoryFoos} {
		if err := daemon.waitCached(ctx, resource, count); err != nil {
			return s, errors.Join(err, daemon.Stop(stopGrace))
		}
	}
	if err := daemon.waitIdle(ctx); err != nil {
		return s, errors.Join(err, daemon.Stop(stopGrace))
	}
	s.setting = setting
	// Before the heap is asked for, which collects garbage.
	if s.usage, err = usage.Of(l.dir, daemon.Name()); err == nil {
		s.live, err = daemon.liveHeap(ctx)
	}
	if err == nil {
		err = daemon.profile(ctx, *memoryProfiles, strings.TrimSpace("started on all "+setting))
	}
	return s, errors.Join(err, daemon.Stop(stopGrace))
}

// listed returns how often the daemons have asked for Pods, by verb and label selector.
func (l *lab) listed() (selectors map[string]int, err error) {
	pods := func(event auditv1.Event) bool { return event.ObjectRef != nil && event.ObjectRef.Resource == "pods" }
	daemon := leaders.ServiceAccount(daemonName, daemonName)
	watches, err := l.cluster.AuditWatches(daemon, pods)
	if err != nil {
		return nil, err
	}
	requests, err := l.cluster.AuditEvents(daemon, pods)
	selectors = map[string]int{}
	for _, event := range append(watches, requests...) {
		if event.Verb == "watch" && event.Stage == auditv1.StageResponseComplete {
			continue // the end of one that was opened
		}
		_, query, _ := strings.Cut(event.RequestURI, "?")
		selector := "none"
		for _, parameter := range strings.Split(query, "&") {
			if strings.HasPrefix(parameter, "labelSelector=") {
				selector = parameter
			}
		}
		selectors[event.Verb+" "+selector]++
	}
	return selectors, err
}

// memoryReport has the figures, for people.
type memoryReport struct {
	idle   inside
	made   inside // when all is made, and at most until then
	steps  []string
	events []string
	starts []started
	lists  map[string]int
}

func (r *memoryReport) add(s step, before, after inside) {
	r.steps = append(r.steps, fmt.Sprintf("%s\t%d\t%.0f\t%.0f\t%.1f\t", s.name, s.count, float64(after.live-before.live)/float64(s.count),
		float64(after.usage.Received-before.usage.Received)/float64(s.count), mebibytes(after.live)))
}

func (r *memoryReport) last() string { return strings.ReplaceAll(r.steps[len(r.steps)-1], "\t", " ") }

func (r *memoryReport) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d CPUs, load average %s, in MiB where nothing else is said\n", runtime.NumCPU(), loadAverage())
	fmt.Fprintf(&s, "idle: live heap %.1f, resident %d, of that anonymous %d, peak %d\n", mebibytes(r.idle.live),
		r.idle.usage.Resident>>20, r.idle.usage.Anonymous>>20, r.idle.usage.Peak>>20)
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MADE\tHOW MANY\tLIVE BYTES FOR EACH\tRECEIVED BYTES FOR EACH\tLIVE HEAP\t")
	for _, row := range r.steps {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	fmt.Fprintf(&s, "bytes of a watch event, in the mean: %s\n", strings.Join(r.events, ", "))
	fmt.Fprintln(w, "SETTING\tLIVE HEAP\tRESIDENT\tANONYMOUS\tPEAK\tRECEIVED\tCPU S\tBUDGET\t")
	for _, start := range append([]started{{"none, while all was made", r.made}}, r.starts...) {
		verdict := "kept"
		if start.usage.Peak > residentBudget {
			verdict = "OVER"
		}
		fmt.Fprintf(w, "%s\t%.1f\t%d\t%d\t%d\t%d\t%.1f\tpeak at most %d: %s\t\n", cmp.Or(start.setting, "none, started on all"), mebibytes(start.live), start.usage.Resident>>20,
			start.usage.Anonymous>>20, start.usage.Peak>>20, start.usage.Received>>20, start.usage.CPU.Seconds(), residentBudget>>20, verdict)
	}
	_ = w.Flush()
	fmt.Fprintf(&s, "requests for Pods: %v", r.lists)
	return s.String()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// observed is a daemon that is asked what it has.
type observed struct {
	*process.Process
	lab *lab
	url string
}

// startObserved starts a daemon with all its controllers. The setting is of an environment
// variable, or empty.
func (l *lab) startObserved(ctx context.Context, setting string) (*observed, error) {
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return nil, err
	}
	path, args, err := l.ours().command(kubeconfig, usual)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args = append([]string{path}, append(args, fmt.Sprintf("--secure-port=%d", port))...)
	if setting != "" {
		args = append([]string{setting}, args...)
	}
	name := fmt.Sprintf("observed-%d", l.started.Add(1))
	p, err := l.group.Start(name, nil, "/usr/bin/env", args...)
	if err != nil {
		return nil, err
	}
	o := &observed{p, l, fmt.Sprintf("https://127.0.0.1:%d", port)}
	return o, await(ctx, "the daemon is ready", pollInterval, func() error {
		_, err := o.ask(ctx, "/readyz")
		return err
	})
}
