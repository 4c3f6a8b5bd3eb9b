// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/sample-controller-manager/hack/faulty"
)

// isolationBudget is what a fault may cost.
const isolationBudget = 0.1

// troubled is the namespace of what is in trouble.
const troubled = "troubled"

// trouble is what one controller meets while another is measured. It is made twice in
// each round, in the same way but for the fault: what the API server has to do for it
// is then no part of what it costs. It lasts until undo is called.
type trouble struct {
	name string
	make func(l *lab, ctx context.Context, fault bool) (undo func() error, err error)
}

var troubles = []trouble{
	{"none: what the machine does", configMaps(1, "none")},
	{"100 objects whose syncs panic", configMaps(100, "panic")},
	{"all 10 workers stuck", configMaps(10, "stuck")},
	{"slow event handler, 50 events/s", stream("slow")},
	{"panicking event handler, 50 events/s", stream("panic")},
	{"100 Foos that cannot be decoded", undecodable},
}

// BenchmarkIsolation measures how fast Foos are served while another controller of the
// daemon, or another Foo, is in trouble, beside how fast they are without. See the
// comment of the package.
func BenchmarkIsolation(b *testing.B) {
	l := newLab(b, (*lab).allowFaulty)
	if _, err := l.measureWith(b.Context(), troubles[0], false); err != nil { // the first is slower
		b.Fatal(err)
	}
	var t isolationTable
	for _, trouble := range troubles {
		b.Run(strings.ReplaceAll(trouble.name, " ", "-"), func(b *testing.B) {
			without, with := l.compare(b, trouble)
			t.add(b, trouble.name, without, with)
			b.Log(&t)
		})
	}
}

// compare measures without and with a trouble, by turns, so that what gets slower or
// faster with time cancels out.
func (l *lab) compare(b *testing.B, trouble trouble) (without, with []work) {
	for round := 0; b.Loop(); round++ {
		for i := range 2 {
			fault := (round+i)%2 == 1
			w, err := l.measureWith(b.Context(), trouble, fault)
			if err != nil {
				b.Fatal(err)
			}
			if fault {
				with = append(with, w)
			} else {
				without = append(without, w)
			}
		}
	}
	return without, with
}

// measureWith measures a daemon of its own.
func (l *lab) measureWith(ctx context.Context, trouble trouble, fault bool) (w work, err error) {
	p, err := l.startFaulty(ctx)
	if err != nil {
		return w, err
	}
	defer func() {
		err = errors.Join(err, p.Stop(stopGrace))
		w.cpu = p.CPUTime()
	}()
	undo, err := trouble.make(l, ctx, fault)
	if err != nil {
		return w, err
	}
	time.Sleep(settle)
	w, err = l.measure(ctx, fmt.Sprintf("round-%d", l.started.Load()))
	return w, errors.Join(err, undo(), l.deleteAll(ctx))
}

// allowFaulty grants the daemon what the faulty controller needs, and has the API server
// take Foos that cannot be decoded.
func (l *lab) allowFaulty(ctx context.Context) error {
	_, err := l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: troubled}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name := metav1.ObjectMeta{Name: faulty.ControllerName}
	_, err = l.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: faulty.Descriptor().Rules}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: daemonName, Name: daemonName}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.cluster.Kubectl(ctx, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", `--patch=[{"op":"replace",
		"path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName","value":{"x-kubernetes-preserve-unknown-fields":true}}]`)
	if err != nil {
		return err
	}
	return await(ctx, "a deploymentName may be anything", pollInterval, func() error { return l.storeFoo(ctx, "try", `["try"]`, "") })
}

// configMaps makes ConfigMaps for the faulty controller.
func configMaps(count int, fault string) func(*lab, context.Context, bool) (func() error, error) {
	return func(l *lab, ctx context.Context, isFault bool) (func() error, error) {
		client := l.kube.CoreV1().ConfigMaps(troubled)
		data := map[string]string{faulty.Fault: fault}
		if !isFault {
			data[faulty.Fault] = "none"
		}
		errs := make([]error, count)
		workqueue.ParallelizeUntil(ctx, 16, count, func(i int) {
			_, errs[i] = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("trouble-%d", i)}, Data: data}, metav1.CreateOptions{})
		})
		return func() error {
			return client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}, errors.Join(errs...)
	}
}

// stream changes a Foo 50 times a second for which the faulty controller has an event
// handler.
func stream(fault string) func(*lab, context.Context, bool) (func() error, error) {
	return func(l *lab, ctx context.Context, isFault bool) (func() error, error) {
		annotation := fault
		if !isFault {
			annotation = "none"
		}
		if err := l.storeFoo(ctx, "stream", `"stream"`, annotation); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		var streaming sync.WaitGroup
		var failed error
		streaming.Go(func() {
			tick := time.NewTicker(time.Second / 50)
			defer tick.Stop()
			for i := 0; failed == nil; i++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d"}}}`, i)
				_, err := l.sample.SamplecontrollerV1alpha1().Foos(troubled).Patch(ctx, "stream", types.MergePatchType, patch, metav1.PatchOptions{})
				if ctx.Err() == nil {
					failed = err
				}
			}
		})
		return func() error {
			cancel()
			streaming.Wait()
			return failed
		}, nil
	}
}

// undecodable stores Foos that cannot be decoded. Without the fault there are none: good
// ones would be work.
func undecodable(l *lab, ctx context.Context, isFault bool) (func() error, error) {
	var err error
	for i := range 100 {
		if isFault && err == nil {
			err = l.storeFoo(ctx, fmt.Sprintf("bad-%d", i), `["bad"]`, "")
		}
	}
	return func() error { return nil }, err // they go with the others
}

// storeFoo creates a Foo of which the deploymentName is any JSON.
func (l *lab) storeFoo(ctx context.Context, name, deploymentName, fault string) error {
	object := fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":%q,"annotations":{%q:%q}},"spec":{"deploymentName":%s,"replicas":0}}`,
		name, faulty.Fault, fault, deploymentName)
	request := l.sample.SamplecontrollerV1alpha1().RESTClient().Post().Namespace(troubled).Resource("foos").SetHeader("Content-Type", "application/json").Body([]byte(object))
	if name == "try" {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(ctx).Error()
}

// isolationTable has the figures so far, for people.
type isolationTable struct {
	rows [][]string
}

// add reports what a trouble costs.
func (t *isolationTable) add(b *testing.B, name string, without, with []work) {
	b.ReportMetric(0, "ns/op")
	row := []string{name, fmt.Sprint(len(with))}
	verdict := "within 10 %"
	for _, figure := range []struct {
		unit string
		of   func(work) float64
		good float64 // 1: more is better, -1: less, 0: there is no budget
	}{
		{"Foos/s", func(w work) float64 { return w.perSecond }, 1},
		{"p50-ms", func(w work) float64 { return milliseconds(median(w.latencies)) }, -1},
		{"max-ms", func(w work) float64 { return milliseconds(slices.Max(w.latencies)) }, 0},
		{"cpu-ms", func(w work) float64 { return milliseconds(w.cpu) }, 0},
	} {
		var a, z, ratios []float64
		for i := range with {
			a, z = append(a, figure.of(without[i])), append(z, figure.of(with[i]))
			ratios = append(ratios, z[i]/a[i])
		}
		ratio := middle(ratios)
		low, high := middleWithin(ratios)
		row = append(row, fmt.Sprintf("%.1f", middle(a)), fmt.Sprintf("%.1f", middle(z)), fmt.Sprintf("%.2f (%.2f-%.2f)", ratio, low, high))
		b.ReportMetric(ratio, figure.unit+"-ratio")
		least, most := figure.good*(1-high), figure.good*(1-low)
		if least > most {
			least, most = most, least
		}
		switch {
		case least > isolationBudget:
			verdict = "OVER 10 %"
		case most > isolationBudget && verdict == "within 10 %":
			verdict = "more rounds would tell"
		}
	}
	t.rows = append(t.rows, append(row, verdict))
}

// String is the table.
func (t *isolationTable) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d CPUs, load average %s; medians over rounds without the fault and with it, and of the ratio in a round (with its 95 %% confidence interval):\n", runtime.NumCPU(), loadAverage())
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tROUNDS\tFOOS/S\tWITH\tRATIO\tP50 MS\tWITH\tRATIO\tMAX MS\tWITH\tRATIO\tCPU MS\tWITH\tRATIO\t")
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	return strings.TrimSuffix(s.String(), "\n")
}

// middle is the median.
func middle(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// middleWithin returns the 95 % confidence interval of the median, however the values are
// spread: each is above it as often as a tossed coin shows heads. With less than six
// values it is all of them.
func middleWithin(all []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	below, chance := 0, math.Pow(0.5, float64(n)) // that at most so many are below the median
	for next := chance; chance <= 0.025; below++ {
		low, high = sorted[below], sorted[n-1-below]
		next *= float64(n-below) / float64(below+1)
		chance += next
	}
	if below == 0 {
		return sorted[0], sorted[n-1]
	}
	return low, high
}
