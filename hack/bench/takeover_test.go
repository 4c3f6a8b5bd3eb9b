// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

const (
	// takeoverBudget is how many times the latency of an idle daemon an edit may wait.
	takeoverBudget = 2
	// idleTime is for how long the latency of an idle daemon is measured.
	idleTime = 10 * time.Second
	// floorName is the program that takes keys in the order in which they come.
	floorName = "floor"
)

// found is what a leader finds when it takes over.
type found struct {
	name   string
	behind bool // each Foo was scaled while nobody led
	rate   int  // of a user's edits, each second
	who    []takerOver
}

var (
	settled = found{"settled", false, 50, []takerOver{daemonEdited, daemonAlone}} // is over soon
	behind  = found{"behind", true, 20, []takerOver{daemonEdited, daemonAlone, floorEdited}}
)

// takerOver is who takes over, and whether a user edits Foos meanwhile.
type takerOver struct {
	name   string
	edited bool
	start  func(l *lab, ctx context.Context) (*process.Process, error)
	begins string // what it logs when it begins; none: that is when it is started
}

// daemonBegins comes when the caches are filled. What was edited before is found by the
// resync, and waits for no other.
const daemonBegins = `"Starting workers" controller="foo-controller"`

var (
	daemonEdited = takerOver{"daemon", true, (*lab).startLeader, daemonBegins}
	daemonAlone  = takerOver{"daemon, nobody edits", false, (*lab).startLeader, daemonBegins}
	// floorEdited has no order of its own: what a queue does by default.
	floorEdited = takerOver{floorName, true, (*lab).startFloor, ""}
)

// BenchmarkTakeover has the daemon begin with 5,000 Foos while a user edits some, and
// measures how long an edit waits, beside how long one does when the daemon has nothing
// else to do. See the comment of the package.
func BenchmarkTakeover(b *testing.B) {
	l := newLab(b, func(l *lab, ctx context.Context) error {
		return errors.Join(l.allowFloor(ctx), l.createFoos(ctx), l.serveFoos(ctx))
	})
	var t takeoverTable
	for _, f := range []found{settled, behind} {
		b.Run(f.name, func(b *testing.B) {
			resyncs := map[string][]resync{}
			for round := 0; b.Loop(); round++ {
				for i := range f.who { // by turns, so that what gets slower with time cancels out
					who := f.who[(round+i)%len(f.who)]
					r, err := l.takeOver(b.Context(), f, who)
					if err != nil {
						b.Fatalf("%s: %v", who.name, err)
					}
					resyncs[who.name] = append(resyncs[who.name], r)
				}
			}
			b.ReportMetric(0, "ns/op")
			t.add(b, f, daemonEdited.name, resyncs[daemonEdited.name], resyncs[daemonAlone.name])
			if all, ok := resyncs[floorEdited.name]; ok {
				t.add(b, f, floorEdited.name, all, nil)
			}
			b.Log(&t)
		})
	}
}

// startLeader starts the daemon with all its controllers; it logs each sync.
func (l *lab) startLeader(ctx context.Context) (*process.Process, error) {
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return nil, err
	}
	path, args, err := l.ours().command(kubeconfig, usual)
	if err != nil {
		return nil, err
	}
	return l.group.Start(fmt.Sprintf("leader-%d", l.started.Add(1)), nil, path, append(args, "-v=4")...)
}

// serveFoos has the daemon make the Deployments of all Foos.
func (l *lab) serveFoos(ctx context.Context) error {
	p, err := l.startLeader(ctx)
	if err != nil {
		return err
	}
	return errors.Join(l.waitQuiet(ctx), p.Stop(stopGrace))
}

// startFloor builds the floor, the first time, and starts it.
func (l *lab) startFloor(ctx context.Context) (*process.Process, error) {
	path := filepath.Join(l.dir, floorName)
	if _, err := os.Stat(path); err != nil {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", path, "./"+floorName)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the floor: %w\n%s", err, output)
		}
	}
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, namespace, floorName)
	if err != nil {
		return nil, err
	}
	return l.group.Start(fmt.Sprintf("%s-%d", floorName, l.started.Add(1)), nil, path, "-kubeconfig="+kubeconfig)
}

// allowFloor makes the floor's ServiceAccount, and grants it what it needs everywhere.
func (l *lab) allowFloor(ctx context.Context) error {
	name := metav1.ObjectMeta{Name: floorName}
	_, err := l.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{samplev1alpha1.GroupName}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{samplev1alpha1.GroupName}, Resources: []string{"foos/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: floorName}},
	}, metav1.CreateOptions{})
	return err
}

// takeoverTable has the figures so far, for people.
type takeoverTable struct {
	rows [][]string
}

// add reports the edits of all rounds, and how fast the resyncs were beside those, if any,
// during which nobody edited anything.
func (t *takeoverTable) add(b *testing.B, f found, who string, edited, alone []resync) {
	var during, idle []edit
	for _, r := range edited {
		during, idle = append(during, r.during...), append(idle, r.idle...)
	}
	if len(during) == 0 || len(idle) == 0 {
		b.Fatalf("%s, %s: there are %d edits during the resync and %d afterwards", f.name, who, len(during), len(idle))
	}
	row := []string{f.name, who, fmt.Sprint(len(edited)), fmt.Sprint(len(during)), fmt.Sprint(len(idle))}
	ratios := map[string]float64{}
	for _, figure := range []struct {
		name string
		of   func(edit) time.Duration
		part float64
	}{
		{"p50", func(e edit) time.Duration { return e.written }, 0.5},
		{"p99", func(e edit) time.Duration { return e.written }, 0.99},
		{"told-p50", func(e edit) time.Duration { return e.told }, 0.5},
		{"waited-p50", func(e edit) time.Duration { return max(0, e.begun-e.told) }, 0.5},
		{"sent-p50", func(e edit) time.Duration { return e.written - max(e.begun, e.told) }, 0.5},
		{"answered-p50", func(e edit) time.Duration { return e.answered }, 0.5},
	} {
		one, other := quantile(during, figure.of, figure.part), quantile(idle, figure.of, figure.part)
		ratio := "-"
		if other > 0 { // it may not have waited at all
			ratios[figure.name] = float64(one) / float64(other)
			ratio = fmt.Sprintf("%.2f", ratios[figure.name])
			b.ReportMetric(ratios[figure.name], who+"-"+figure.name+"-ratio")
		}
		row = append(row, fmt.Sprintf("%.1f / %.1f ms", milliseconds(one), milliseconds(other)), ratio)
	}
	speed := "-"
	if len(alone) > 0 {
		with, without := middle(perSecond(edited)), middle(perSecond(alone))
		speed = fmt.Sprintf("%.0f / %.0f = %.2f", with, without, with/without)
		b.ReportMetric(with/without, who+"-resync-speed-ratio")
	}
	verdict := fmt.Sprintf("within %d times", takeoverBudget)
	if ratios["p50"] > takeoverBudget || ratios["p99"] > takeoverBudget {
		verdict = fmt.Sprintf("OVER %d times", takeoverBudget)
	}
	t.rows = append(t.rows, append(row, speed, verdict))
}

// quantile returns what a part of the edits does not exceed.
func quantile(edits []edit, of func(edit) time.Duration, part float64) time.Duration {
	var all []time.Duration
	for _, e := range edits {
		all = append(all, of(e))
	}
	slices.Sort(all)
	return all[min(int(part*float64(len(all))), len(all)-1)]
}

func perSecond(resyncs []resync) (all []float64) {
	for _, r := range resyncs {
		all = append(all, float64(r.foos)/r.to.Sub(r.from).Seconds())
	}
	return all
}

// String is the table.
func (t *takeoverTable) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d Foos, %d CPUs, load average %s; from an edit until the write for it, during the resync / afterwards; of that until a watch of somebody else tells of it, until a worker begins, until the write is received; then until that is answered:\n", fooCount, runtime.NumCPU(), loadAverage())
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FOUND\tWHO\tTIMES\tEDITS\tIDLE\tP50\tRATIO\tP99\tRATIO\tTOLD P50\tRATIO\tWAITED P50\tRATIO\tSENT P50\tRATIO\tANSWERED P50\tRATIO\tFOOS/S WITH EDITS / WITHOUT\t\t")
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	return strings.TrimSuffix(s.String(), "\n")
}
