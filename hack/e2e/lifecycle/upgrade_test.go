// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// nextVersion is the version of a build that stands for the next release.
const nextVersion = "v99.0.0"

// TestRollingUpgrade rolls two replicas to the next build and back, as their
// Deployment does it, while Foos are scaled all the time. The roll itself must not
// cause a write: there is none for Foos that nobody touches, one patch for each
// scaling of the others, and no write of a status that says what it said before.
func TestRollingUpgrade(t *testing.T) {
	framework.Long(t)
	next := filepath.Join(framework.Cluster().Dir, "next", framework.DaemonName)
	if err := framework.Build(t.Context(), next, "BUILD_VERSION="+nextVersion); err != nil {
		t.Fatal(err)
	}
	framework.FreeLease(t)
	untouched, scaled := framework.NewNamespace(t), framework.NewNamespace(t)
	replicas := []*framework.Replica{framework.StartReplica(t).Ready(), framework.StartReplica(t).Ready()}
	for i := range 20 {
		framework.Foos.Create(t, untouched, fmt.Sprintf("foo-%d", i), 2)
	}
	for i := range 20 {
		framework.Foos.WaitReady(t, untouched, fmt.Sprintf("foo-%d", i), 2)
		framework.Foos.WaitPodsReported(t, untouched, fmt.Sprintf("foo-%d", i), 2)
	}
	statuses := framework.Record[*samplev1alpha1.Foo](t, framework.Sample().SamplecontrollerV1alpha1().Foos(scaled).Watch)
	load := startLoad(t, scaled, "a", "b", "c")
	clustertest.WaitUntil(t, "an Event of a later Foo is sent, and with it those before", func(context.Context) error {
		if framework.Requests(t, scaled)["create events"] == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	before := framework.Requests(t, untouched)
	if before["create deployments"] != 20 || before["create events"] != 20 {
		t.Errorf("requests for 20 new Foos are %v: the audit log does not tell all", before)
	}
	load.waitFor(t, 10)
	for _, build := range []string{next, framework.Binary()} {
		roll(t, replicas, build)
		load.waitFor(t, 10)
	}
	scalings := load.end(t)

	if diff := cmp.Diff(before, framework.Requests(t, untouched)); diff != "" {
		t.Errorf("requests for Foos that nobody touched (-before +after the roll):\n%s", diff)
	}
	var changes int
	clustertest.WaitUntil(t, "each write of a status is seen to change it", func(context.Context) error {
		changes = countStatusChanges(statuses)
		if got := framework.Requests(t, scaled)["patch foos/status"]; got != changes {
			return fmt.Errorf("%d writes, %d changes", got, changes)
		}
		return nil
	})
	all := framework.Requests(t, scaled)
	if got := all["update deployments/scale"]; got != scalings {
		t.Errorf("Deployments were scaled %d times for %d scalings, want one for each", got, scalings)
	}
	t.Logf("requests for %d scalings: %v", scalings, all)
	stdout, _, _ := framework.RunCommand(t, "--version")
	version := strings.TrimSpace(strings.TrimPrefix(stdout, framework.DaemonName))
	wantBuilds(t, scaled, version, nextVersion, version)
	for _, r := range replicas {
		r.Stop()
	}
	framework.WantNoDenials(t)
}

// roll replaces the replicas one by one: the new one is ready before the old one is
// asked to end.
func roll(t *testing.T, replicas []*framework.Replica, build string) {
	t.Helper()
	for i, old := range replicas {
		kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName, framework.DaemonName)
		if err != nil {
			t.Fatal(err)
		}
		replicas[i] = framework.StartBuild(t, build, kubeconfig).Ready()
		old.Stop()
	}
}

// load scales Foos by turns. The next scaling of a Foo waits until its Deployment
// has the one before, so that none is skipped.
type load struct {
	ns       string
	names    []string
	scalings atomic.Int64
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// startLoad makes the Foos and begins to scale them.
func startLoad(t *testing.T, ns string, names ...string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{ns: ns, names: names, stop: cancel}
	for _, name := range names {
		framework.Foos.Create(t, ns, name, 1)
		framework.Foos.WaitReady(t, ns, name, 1)
		l.running.Go(func() {
			for replicas := int32(2); ctx.Err() == nil; replicas = replicas%3 + 1 {
				if err := l.scale(name, replicas); err != nil {
					t.Errorf("scaling Foo %s: %v", name, err)
					return
				}
				l.scalings.Add(1)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		l.running.Wait()
	})
	return l
}

// scale is not cut short by the end of the load: what is begun is counted.
func (l *load) scale(name string, replicas int32) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := framework.Sample().SamplecontrollerV1alpha1().Foos(l.ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		d, err := framework.Kube().AppsV1().Deployments(l.ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && *d.Spec.Replicas == replicas, err
	})
}

// WaitFor waits until so many more scalings have been carried out.
func (l *load) waitFor(t *testing.T, more int64) {
	t.Helper()
	want := l.scalings.Load() + more
	clustertest.WaitUntil(t, fmt.Sprintf("%d more scalings", more), func(context.Context) error {
		if got := l.scalings.Load(); got < want {
			return fmt.Errorf("there have been %d", got-(want-more))
		}
		return nil
	})
}

// end ends the load, waits until the Foos are ready, and returns how often they
// were scaled.
func (l *load) end(t *testing.T) (scalings int) {
	t.Helper()
	l.stop()
	l.running.Wait()
	for _, name := range l.names {
		framework.Foos.WaitReady(t, l.ns, name, int(*framework.Deployment(t, l.ns, name).Spec.Replicas))
	}
	return int(l.scalings.Load())
}

// wantBuilds compares the versions of those who wrote in a namespace, one after the
// other.
func wantBuilds(t *testing.T, ns string, want ...string) {
	t.Helper()
	var got []string
	for _, event := range framework.DaemonEvents(t, ns) {
		version, _, _ := strings.Cut(strings.TrimPrefix(event.UserAgent, framework.DaemonName+"/"), " ")
		if event.ObjectRef.Resource != "events" && (len(got) == 0 || got[len(got)-1] != version) {
			got = append(got, version)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions that wrote (-want +got):\n%s", diff)
	}
}

// countStatusChanges counts how often the status of a Foo changed.
func countStatusChanges(foos *framework.History[*samplev1alpha1.Foo]) (changes int) {
	last := map[types.UID]samplev1alpha1.FooStatus{}
	for _, change := range foos.Changes() {
		foo := change.Object
		if before, ok := last[foo.UID]; ok && !equality.Semantic.DeepEqual(before, foo.Status) {
			changes++
		}
		last[foo.UID] = foo.Status
	}
	return changes
}
